'use strict';

const byId = (id) => document.getElementById(id);

function element(name, className, ...children) {
    const made = document.createElement(name);
    if (className) made.className = className;
    made.append(...children);
    return made;
}

/// A schema in a few words.
function words(schema) {
    if (schema.oneOf) return schema.oneOf.map(words).join(' or ');
    if (schema.type === 'boolean') return 'true, false';
    if (schema.enum) return schema.enum.join(', ');
    if (schema.type === 'number') {
        const range = schema.coefficient ? `a number (× ${schema.coefficient.join(' × ')})` : `${schema.minimum} to ${schema.maximum}`;
        return `${range}${schema.unit ? ` ${schema.unit}` : ''}`;
    }
    if (schema.type === 'array') return `a list of ${words(schema.items)}`;
    if (schema.type === 'object') return `{ ${Object.keys(schema.properties ?? {}).join(', ')} }`;
    return schema.format ?? schema.pattern ?? 'text';
}

function operation(path, method, described, document) {
    const title = element('summary', '', element('code', `method ${method}`, method.toUpperCase()), ' ', element('code', '', path), ` ${described.summary}`);
    const block = element('details', 'operation', title);
    const schemaOf = (content) => content?.['application/json']?.schema?.$ref?.split('/').pop();
    const body = schemaOf(described.requestBody?.content);
    const parameters = (described.parameters ?? []).map((one) => one.$ref.split('/').pop());
    if (parameters.length > 0) block.append(element('p', '', `Query: ${parameters.join(', ')}`));
    if (body) block.append(element('p', '', 'Body: '), element('pre', '', JSON.stringify(document.components.schemas[body], null, 2)));
    for (const [status, answer] of Object.entries(described.responses)) {
        const schema = schemaOf(answer.content ?? document.components.responses[answer.$ref?.split('/').pop()]?.content);
        block.append(element('p', '', `${status}: ${schema ?? answer.description}`));
    }
    return block;
}

function type(name, schema, common) {
    const block = element('details', 'type', element('summary', '', element('code', '', name), ` ${schema.eoj} ${schema.description}`));
    block.dataset.words = `${name} ${schema.eoj} ${schema.description}`.toLowerCase();
    block.addEventListener('toggle', () => {
        if (!block.open || block.querySelector('table')) return;
        const table = element('table');
        const properties = { ...(schema.allOf ? common.properties : {}), ...schema.properties };
        for (const [property, of] of Object.entries(properties)) {
            const mark = of.readOnly ? 'read' : 'read, set';
            table.append(element('tr', '', element('th', '', property), element('td', '', of.epc), element('td', '', mark), element('td', '', words(of))));
        }
        block.append(table);
    });
    return block;
}

async function show() {
    const document = await (await fetch('openapi.json')).json();
    byId('about').textContent = document.info.description;
    const tags = new Map();
    for (const [path, item] of Object.entries(document.paths)) {
        for (const [method, described] of Object.entries(item)) {
            if (method === 'parameters') continue;
            const tag = described.tags[0];
            if (!tags.has(tag)) tags.set(tag, element('section', '', element('h2', '', tag)));
            tags.get(tag).append(operation(path, method, described, document));
        }
    }
    byId('operations').append(...tags.values());
    const { schemas } = document.components;
    const types = Object.entries(schemas).filter(([, schema]) => schema.eoj).map(([name, schema]) => type(name, schema, schemas.common));
    byId('types').append(...types);
    byId('find').addEventListener('input', () => {
        const wanted = byId('find').value.trim().toLowerCase();
        types.forEach((block) => { block.hidden = !block.dataset.words.includes(wanted); });
    });
}

show().catch((error) => { byId('about').textContent = error.message; });
