// Package asaasface serves the sandbox's bank in the shapes of Asaas, API version 3: for tests of
// the driver asaas, and to try it without a contract.
//
// [Face] translates Asaas' calls into those of one contract of the bank, which has the records,
// and the bank's notices and questions into Asaas' webhooks. The face has a file of its
// own for what only Asaas has: customers, references, instalments, the address for notices. As at
// Asaas, a repeated request has a second effect.
package asaasface
