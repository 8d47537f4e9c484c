//go:build race

package httpapi_test

// The race detector lets pools lose what they are given, now and then.
const allocationsMost = 160
