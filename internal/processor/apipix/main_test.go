package apipix

import (
	"os"
	"testing"
)

// scratch is a folder of all tests of the package.
var scratch string

func tempDir() (string, error) { return scratch, nil }

func TestMain(m *testing.M) {
	var err error
	if scratch, err = os.MkdirTemp("", "apipix"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(scratch)
	os.Exit(code)
}
