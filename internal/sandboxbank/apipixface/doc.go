// Package apipixface serves the sandbox's bank as a bank of the API Pix, in the shapes of Efí:
// the real driver can be tried on one machine.
//
// [Face] translates requests into those of the bank's own protocol, so both have the same
// records and faults: charges, payments, returns, transfers and the balance are the bank's. The
// face keeps only what the bank does not: texts of charges and the address for notices, in a
// file beside the bank's journal.
//
// [Authority] issues the certificates of both sides. The server accepts only clients with a
// certificate of the application and a token; tokens expire. Notices leave with a certificate
// of the bank.
package apipixface
