//go:build !race

package httpapi_test

const allocationsMost = 80
