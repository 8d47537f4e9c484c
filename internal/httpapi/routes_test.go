package httpapi_test

import (
	"slices"
	"testing"

	"github.com/porteira/porteira/internal/httpapi"
	"github.com/porteira/porteira/internal/httpapi/apitest"
)

// The table of routes and the contract have the same operations, and agree on
// which require credentials.
func TestRoutesAreTheContract(t *testing.T) {
	t.Parallel()
	doc := apitest.Document(t)
	contract := map[string]bool{} // operation -> needs credentials
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			contract[method+" "+path] = op.Security == nil
		}
	}
	var built []string
	for _, rt := range httpapi.Routes() {
		name := rt.Method + " " + rt.Path
		built = append(built, name)
		guarded, known := contract[name]
		if !known {
			t.Errorf("%s is not in the contract", name)
		}
		if guarded != (rt.Scope != "" && name != "POST /payin") {
			t.Errorf("%s: the contract is wrong about credentials", name)
		}
	}
	for name := range contract {
		if !slices.Contains(built, name) {
			t.Errorf("%s is in the contract only", name)
		}
	}
}
