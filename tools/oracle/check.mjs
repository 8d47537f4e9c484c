// Reads one JSON object a line on standard input and lets published packages
// judge it: pix-utils and @brazilian-utils for BR Codes, boletos, Pix keys and
// documents, standardwebhooks for signatures. Prints what they see otherwise
// than the line expects, and exits 1 if there is any such line.
import { createInterface } from "node:readline";
import { hasError, parsePix } from "pix-utils";
import * as br from "@brazilian-utils/brazilian-utils";
import { Webhook } from "standardwebhooks";

const judges = {
  brcode({ value, expect }) {
    const code = parsePix(value);
    const valid = !hasError(code) && br.isValidPixPayload(value);
    if (valid !== expect.valid) return `pix-utils ${!hasError(code)}, brazilian-utils ${br.isValidPixPayload(value)}`;
    if (!valid) return "";
    const seen = {
      type: code.type, name: code.merchantName, city: code.merchantCity,
      ...(code.type === "STATIC"
        ? { key: code.pixKey, txid: code.txid, cents: Math.round((code.transactionAmount ?? 0) * 100) }
        : { url: code.url }),
    };
    return differing(expect, seen);
  },
  boleto({ value, expect }) {
    if (br.isValidBoleto(value) !== expect.valid) return `isValidBoleto ${!expect.valid}`;
    if (!expect.valid) return "";
    const info = br.getBoletoInfo(value);
    // Its due dates are left alone: it reads factors in a window of its own.
    return differing({ cents: expect.cents, bank: expect.bank }, { cents: info.amount, bank: info.bankCode });
  },
  pixkey({ value, expect }) {
    return br.isValidPixKey(value) === expect.valid ? "" : `isValidPixKey ${!expect.valid}`;
  },
  taxid({ value, expect }) {
    const valid = value.length === 11 ? br.isValidCpf(value) : br.isValidCnpj(value, { version: 2 });
    return valid === expect.valid ? "" : `valid ${valid}`;
  },
  webhook({ value, expect }) {
    try {
      new Webhook(value.secret).verify(value.body, value.headers);
    } catch (error) {
      return expect.valid ? String(error) : "";
    }
    return expect.valid ? "" : "verified";
  },
};

// differing names the first member of want that seen does not have.
function differing(want, seen) {
  for (const [name, value] of Object.entries(want)) {
    if (name !== "valid" && seen[name] !== value) return `${name} is ${JSON.stringify(seen[name])}`;
  }
  return "";
}

let judged = 0, wrong = 0;
for await (const line of createInterface({ input: process.stdin })) {
  const item = JSON.parse(line);
  let objection;
  try {
    objection = judges[item.kind](item);
  } catch (error) {
    objection = String(error);
  }
  judged++;
  if (objection) {
    wrong++;
    console.log(`${objection}: ${line}`);
  }
}
console.log(`judged ${judged}, wrong ${wrong}`);
process.exitCode = wrong ? 1 : 0;
