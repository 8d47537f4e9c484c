// Package tidy tests the house rules. Each rule checks all files of the repository and
// lists every violation; a test with small invalid sources shows that each rule can fail.
package tidy
