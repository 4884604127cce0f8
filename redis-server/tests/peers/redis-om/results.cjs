// Prints what vitest has written into results.json: `passed spec/file.ts: suite test`.
const fs = require('node:fs')
const path = require('node:path')

for (const { name, assertionResults } of JSON.parse(fs.readFileSync('results.json')).testResults) {
  const file = path.relative(process.cwd(), name)
  assertionResults.forEach(({ status, fullName }) => console.log(`${status} ${file}: ${fullName.trim()}`))
}
