package pixkey_test

import (
	"errors"
	"fmt"

	"github.com/porteira/porteira/pixkey"
	"github.com/porteira/porteira/taxid"
)

func ExampleNormalize() {
	for _, key := range []struct {
		t pixkey.Type
		s string
	}{
		{pixkey.Phone, "11987654321"},
		{pixkey.Email, "Pix@BCB.gov.br"},
		{pixkey.EVP, "123E4567-E89B-12D3-A456-426655440000"},
		{pixkey.CPF, "52998224725"},
	} {
		normal, err := pixkey.Normalize(key.t, key.s)
		fmt.Println(key.t, normal, err)
	}
	// Output:
	// PHONE +5511987654321 <nil>
	// EMAIL pix@bcb.gov.br <nil>
	// EVP 123e4567-e89b-12d3-a456-426655440000 <nil>
	// CPF 52998224725 <nil>
}

func ExampleCheck() {
	err := pixkey.Check(pixkey.CPF, "52998224724")
	fmt.Println(errors.Is(err, taxid.ErrCheckDigits))
	fmt.Println(pixkey.CheckForm(pixkey.CPF, "52998224724"))
	fmt.Println(pixkey.Check(pixkey.Phone, "+55 11 98765-4321"))
	// Output:
	// true
	// <nil>
	// pixkey: a PHONE key is + and 3 to 16 digits, or 10 or 11 digits of a Brazilian number
}

func ExampleMask() {
	fmt.Println(pixkey.Mask(pixkey.Email, "fulano@example.com"))
	fmt.Println(pixkey.Mask(pixkey.Phone, "11987654321"))
	// Output:
	// f***@example.com
	// +55*******4321
}
