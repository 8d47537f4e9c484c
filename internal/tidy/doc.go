// Package tidy holds the house rules that a machine can check. They are its
// tests: each rule reads the whole repository, names every place that breaks
// it, and is itself tried on a small source that must not pass.
package tidy
