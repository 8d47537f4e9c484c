//go:build race

package httpapi_test

// Under the race detector, pools drop some objects.
const allocationsMost = 160
