// Package apipix is the driver of the API Pix of Banco Central: a stateless translation of
// requests and answers for any bank that serves it.
//
// The profile bacen is the standard alone: charges, their payments, and refunds. The profile
// efi adds what Efí offers beyond it: Pix to any key, the list of them, and the balance.
//
// Only what the standard or Efí documents proves anything: verdicts.go is the table. All
// other answers are unknown, and looked up.
package apipix
