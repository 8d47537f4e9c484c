// Reads one JSON object per line on standard input and has published packages check
// it: pix-utils and @brazilian-utils for BR Codes, boletos, Pix keys and documents,
// standardwebhooks for signatures. Prints each line whose result differs from the
// expected one, and exits 1 if there are any.
import { createInterface } from "node:readline";
import { hasError, parsePix } from "pix-utils";
import * as br from "@brazilian-utils/brazilian-utils";
import { Webhook } from "standardwebhooks";

const checkers = {
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
    // Due dates are not compared: the package decodes factors in another window.
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

let checked = 0, wrong = 0;
for await (const line of createInterface({ input: process.stdin })) {
  const item = JSON.parse(line);
  let difference;
  try {
    difference = checkers[item.kind](item);
  } catch (error) {
    difference = String(error);
  }
  checked++;
  if (difference) {
    wrong++;
    console.log(`${difference}: ${line}`);
  }
}
console.log(`checked ${checked}, wrong ${wrong}`);
process.exitCode = wrong ? 1 : 0;
