package taxid_test

import (
	"errors"
	"fmt"

	"github.com/porteira/porteira/taxid"
)

func ExampleParse() {
	id, err := taxid.Parse("52998224725")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(id.Kind(), id, id.Formatted(), id.Masked())
	// Output: CPF 52998224725 529.982.247-25 ***.982.247-**
}

func ExampleParse_alphanumeric() {
	id, err := taxid.Parse("12ABC34501DE35")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(id.Kind(), id.Formatted())
	// Output: CNPJ 12.ABC.345/01DE-35
}

func ExampleParse_errors() {
	for _, s := range []string{"529.982.247-25", "52998224724", "11111111111"} {
		_, err := taxid.Parse(s)
		fmt.Println(errors.Is(err, taxid.ErrForm), errors.Is(err, taxid.ErrCheckDigits), errors.Is(err, taxid.ErrRepeated))
	}
	// Output:
	// true false false
	// false true false
	// false false true
}

func ExampleCheckDigits() {
	digits, err := taxid.CheckDigits("12ABC34501DE")
	fmt.Println(digits, err)
	// Output: 35 <nil>
}
