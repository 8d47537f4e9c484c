// Lints the contract with Redocly's strict rules: node lint.mjs FILE. It reads no network.
import { createConfig, lint } from '@redocly/openapi-core';

// exceptions are what a rule finds and we keep, with the reason. One that is not found any more
// is a problem too.
const noInput = 'it has no input, so a client cannot cause an error besides those of every path';
const exceptions = new Map([
  ['operation-4xx-response #/paths/~1healthz/get/responses', noInput],
  ['operation-4xx-response #/paths/~1readyz/get/responses', noInput],
  ['operation-4xx-response #/paths/~1openapi.json/get/responses', noInput],
  ['operation-4xx-response #/paths/~1docs/get/responses', noInput],
  ['operation-4xx-response #/paths/~1docs~1errors/get/responses', noInput],
  ['operation-4xx-response #/paths/~1sandbox~1faults/delete/responses', noInput],
]);

const config = await createConfig({ extends: ['recommended-strict'] });
let wrong = 0;
for (const problem of await lint({ ref: process.argv[2], config })) {
  const rule = `${problem.ruleId} ${problem.location[0]?.pointer ?? ''}`;
  if (!exceptions.delete(rule)) {
    wrong++;
    console.log(`${rule}: ${problem.message}`);
  }
}
for (const rule of exceptions.keys()) {
  wrong++;
  console.log(`${rule}: this exception is not needed`);
}
console.log(`linted, wrong ${wrong}`);
