package coretest_test

import (
	"os"
	"testing"

	"github.com/porteira/porteira/internal/db/dbtest"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Main(m)) }
