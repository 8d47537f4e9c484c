package tidy

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
)

// secretName matches names of secrets and of values that authenticate.
var secretName = regexp.MustCompile(`(?i:secret|signature|password|hmac)|MAC$|cursorHash`)

// comparers are the functions that stop at the first difference.
var comparers = []string{"bytes.Equal", "bytes.Compare", "slices.Equal", "strings.Compare", "strings.EqualFold", "reflect.DeepEqual"}

// checkSecrets refuses comparisons whose duration depends on the secret (CWE-208);
// crypto/subtle and hmac.Equal take constant time.
func checkSecrets(repository *tree) []finding {
	var found []finding
	for _, file := range repository.sources {
		if file.test {
			continue
		}
		ast.Inspect(file.File, func(node ast.Node) bool {
			var operands []ast.Expr
			switch node := node.(type) {
			case *ast.BinaryExpr:
				if node.Op == token.EQL || node.Op == token.NEQ {
					operands = []ast.Expr{node.X, node.Y}
				}
			case *ast.CallExpr:
				if slices.Contains(comparers, qualifiedName(node.Fun)) {
					operands = node.Args
				}
			}
			if len(operands) != 2 || isKnown(operands[0]) || isKnown(operands[1]) {
				return true
			}
			for _, operand := range operands {
				if name := operandName(operand); secretName.MatchString(name) {
					found = append(found, finding{file.path + ": " + name, repository.at(node.Pos()), "compare secrets in constant time"})
					return true
				}
			}
			return true
		})
	}
	return found
}

// isKnown reports whether an operand is a constant or a length.
func isKnown(operand ast.Expr) bool {
	switch operand := operand.(type) {
	case *ast.BasicLit, *ast.CompositeLit:
		return true
	case *ast.Ident:
		return operand.Name == "nil" || operand.Name == "true" || operand.Name == "false"
	case *ast.CallExpr:
		return qualifiedName(operand.Fun) == "len"
	case *ast.UnaryExpr:
		return isKnown(operand.X)
	}
	return false
}

// operandName is the name of the variable, field or function in an operand, within
// conversions and slices.
func operandName(operand ast.Expr) string {
	switch operand := operand.(type) {
	case *ast.Ident:
		return operand.Name
	case *ast.SelectorExpr:
		return operand.Sel.Name
	case *ast.SliceExpr:
		return operandName(operand.X)
	case *ast.IndexExpr:
		return operandName(operand.X)
	case *ast.ParenExpr:
		return operandName(operand.X)
	case *ast.StarExpr:
		return operandName(operand.X)
	case *ast.CallExpr:
		_, toBytes := operand.Fun.(*ast.ArrayType)
		if name := operandName(operand.Fun); !toBytes && name != "string" {
			return name
		}
		if len(operand.Args) == 1 {
			return operandName(operand.Args[0])
		}
	}
	return ""
}

// qualifiedName is a function's name with its package.
func qualifiedName(function ast.Expr) string {
	switch function := function.(type) {
	case *ast.Ident:
		return function.Name
	case *ast.SelectorExpr:
		if owner, ok := function.X.(*ast.Ident); ok {
			return owner.Name + "." + function.Sel.Name
		}
	}
	return ""
}

var secretMutants = []mutant{
	{"all kinds of comparison",
		map[string]string{"internal/a/a.go": `package a
			func f(signature, want string, stored, hash []byte, c credential) bool {
				return signature != want || string(hash) == string(c.SecretHash) || bytes.Equal([]byte(signature), stored) ||
					bytes.Equal(noticeMAC(want), stored)
			}`},
		[]string{"internal/a/a.go: SecretHash", "internal/a/a.go: noticeMAC", "internal/a/a.go: signature", "internal/a/a.go: signature"}},
	{"in constant time, or with constants",
		map[string]string{
			"internal/a/a.go": `package a
				func f(signature, want string, secret []byte) bool {
					return hmac.Equal([]byte(signature), []byte(want)) && signature != "" && secret != nil && len(secret) == size
				}`,
			"internal/a/a_test.go": "package a\nvar same = secret == got",
		}, nil},
}
