//go:build !unix

package app

func filesMax() int { return 0 }
