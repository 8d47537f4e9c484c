// Package oracle has published packages of another language check the output of the Go
// libraries and the webhook sender, and the contract. It holds tests only: see check.mjs and lint.mjs.
package oracle
