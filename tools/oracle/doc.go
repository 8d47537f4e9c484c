// Package oracle lets published packages of another language judge what the Go
// libraries and the webhook sender write. It holds tests only: see check.mjs.
package oracle
