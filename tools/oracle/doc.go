// Package oracle has published packages of another language check the output of the Go
// libraries and the webhook sender. It holds tests only: see check.mjs.
package oracle
