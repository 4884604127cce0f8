'use strict';

const byId = (id) => document.getElementById(id);
const devices = new Map();
let token = sessionStorage.getItem('token') ?? '';
let stop = new AbortController();

const headers = (more) => (token ? { Authorization: `Bearer ${token}`, ...more } : { ...more });

/// An element with a class, and a text or children.
function element(name, className, ...children) {
    const made = document.createElement(name);
    if (className) made.className = className;
    made.append(...children);
    return made;
}

/// A value as people read it.
function readable(value, schema) {
    if (value === null || value === undefined) return '–';
    if (typeof value === 'boolean') return value ? 'yes' : 'no';
    if (typeof value === 'object') return JSON.stringify(value);
    const unit = typeof value === 'number' ? unitOf(schema) : '';
    return `${value}${unit ? ` ${unit}` : ''}`;
}

const arms = (schema) => schema.oneOf ?? [schema];
const unitOf = (schema) => ({ Celsius: '°C', degree: '°' })[unit(schema)] ?? unit(schema);
const unit = (schema) => arms(schema).find((arm) => arm.unit)?.unit ?? '';

/// The values that can be chosen: truths, names and listed numbers that are not only read.
function choices(schema) {
    return arms(schema).flatMap((arm) => (arm.values ?? []).filter((entry) => !entry.readOnly).map((entry) => entry.value));
}

/// The control that sets a property; null if there is none for it.
function control(device, name, property) {
    const numeric = arms(property.schema).find((arm) => arm.type === 'number' && !arm.enum);
    const listed = [...new Set(choices(property.schema))];
    const form = element('form', 'set');
    const send = (value) => put(device, name, value, form);
    if (!numeric && listed.length > 0) {
        const select = element('select', '', ...listed.map((value) => {
            const option = element('option', '', readable(value, property.schema));
            option.value = JSON.stringify(value);
            return option;
        }));
        select.setAttribute('aria-label', `${property.descriptions.en}: set`);
        select.addEventListener('change', () => send(JSON.parse(select.value)));
        form.append(select);
        return form;
    }
    const input = element('input');
    input.setAttribute('aria-label', `${property.descriptions.en}: set`);
    let read = () => input.value;
    if (numeric) {
        input.type = 'text';
        input.inputMode = 'decimal';
        input.placeholder = [`${numeric.minimum ?? ''}…${numeric.maximum ?? ''}`, ...listed].join(', ');
        read = () => (Number.isNaN(Number(input.value)) || input.value.trim() === '' ? input.value.trim() : Number(input.value));
    } else if (arms(property.schema).some((arm) => ['object', 'array'].includes(arm.type))) {
        input.placeholder = 'JSON';
        read = () => JSON.parse(input.value);
    } else {
        input.placeholder = property.schema.format ?? 'text';
    }
    const button = element('button', '', 'Set');
    form.append(input, button);
    form.addEventListener('submit', (event) => {
        event.preventDefault();
        try {
            send(read());
        } catch (error) {
            complain(form, error.message);
        }
    });
    return form;
}

/// Shows what a property is, where it is read and where it is chosen.
function present(cell, value, schema) {
    cell.textContent = readable(value, schema);
    const select = cell.closest('tr').querySelector('select');
    if (select) select.value = JSON.stringify(value);
}

function complain(form, text) {
    form.querySelector('.problem')?.remove();
    if (text) form.append(element('span', 'problem', text));
}

async function put(device, name, value, form) {
    complain(form, '');
    const path = `elapi/v1/devices/${device.id}/properties/${name}`;
    try {
        const answer = await fetch(path, {
            method: 'PUT', headers: headers({ 'Content-Type': 'application/json' }), body: JSON.stringify({ [name]: value }),
        });
        if (!answer.ok) complain(form, (await answer.json()).message);
    } catch (error) {
        complain(form, error.message);
    }
}

async function act(device, name, form) {
    complain(form, '');
    const answer = await fetch(`elapi/v1/devices/${device.id}/actions/${name}`, {
        method: 'POST', headers: headers({ 'Content-Type': 'application/json' }), body: '{}',
    });
    if (!answer.ok) complain(form, (await answer.json()).message);
}

function show(device) {
    const card = element('section', 'device');
    card.dataset.device = device.id;
    const title = `${device.descriptions.en}${device.instance > 1 ? ` ${device.instance}` : ''}`;
    card.append(element('h2', '', title), element('p', 'place', `${device.descriptions.ja} · ${device.address} · ${device.id}`));
    const table = element('table');
    const values = new Map();
    for (const [name, property] of Object.entries(device.properties)) {
        const value = element('td', 'value');
        value.dataset.property = name;
        values.set(name, [value, property.schema]);
        const label = element('th', '', property.descriptions.en);
        label.title = `${property.descriptions.ja} (${[name, property.epc].filter(Boolean).join(', ')})`;
        const set = element('td', '', ...(property.writable ? [control(device, name, property)] : []));
        table.append(element('tr', '', label, value, set));
        present(value, property.value, property.schema);
    }
    card.append(table);
    for (const [name, action] of Object.entries(device.actions ?? {})) {
        if (Object.keys(action.schema).length > 0) continue;
        const form = element('form', 'set', element('button', '', action.descriptions.en));
        form.addEventListener('submit', (event) => {
            event.preventDefault();
            act(device, name, form);
        });
        card.append(form);
    }
    devices.get(device.id)?.card.remove();
    devices.set(device.id, { card, values });
    const after = [...devices.keys()].sort().find((id) => id > device.id && devices.get(id).card.isConnected);
    byId('devices').insertBefore(card, after ? devices.get(after).card : null);
    online(device.id, device.online);
}

function online(id, is) {
    devices.get(id)?.card.classList.toggle('lost', !is);
}

/// The handlers of the messages in the stream of events.
const told = {
    device: show,
    property({ id, name, value }) {
        const [cell, schema] = devices.get(id)?.values.get(name) ?? [];
        if (!cell) return;
        present(cell, value, schema);
        cell.classList.remove('new');
        // Begins the animation again.
        void cell.offsetWidth;
        cell.classList.add('new');
    },
    status: (status) => online(status.id, status.online),
    gone({ id }) {
        devices.get(id)?.card.remove();
        devices.delete(id);
    },
};

function take(block) {
    const field = (name) => block.split('\n').find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
    const [event, data] = [field('event'), field('data')];
    if (event && data) told[event]?.(JSON.parse(data));
    byId('none').hidden = devices.size > 0;
}

/// Listens until the stream ends. Not by EventSource, which sends no token.
async function listen() {
    const answer = await fetch('events', { headers: headers(), signal: stop.signal });
    byId('login').hidden = answer.status !== 401;
    if (!answer.ok) throw new Error((await answer.json()).message);
    byId('state').textContent = 'live';
    devices.forEach((device) => device.card.remove());
    devices.clear();
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let text = '';;) {
        const { done, value } = await reader.read();
        if (done) throw new Error('the server has ended');
        const blocks = (text + value).split('\n\n');
        text = blocks.pop();
        blocks.forEach(take);
    }
}

async function live() {
    const mine = stop;
    while (!mine.signal.aborted) {
        try {
            await listen();
        } catch (error) {
            if (mine.signal.aborted) return;
            byId('state').textContent = error.message;
        }
        await new Promise((wake) => setTimeout(wake, 2000));
    }
}

byId('login').addEventListener('submit', (event) => {
    event.preventDefault();
    token = byId('token').value;
    sessionStorage.setItem('token', token);
    stop.abort();
    stop = new AbortController();
    live();
});
live();
