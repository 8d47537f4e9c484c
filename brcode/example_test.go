package brcode_test

import (
	"errors"
	"fmt"

	"github.com/porteira/porteira/brcode"
)

func ExampleStatic_Encode() {
	code, err := brcode.Static{
		Key:          "12345678909",
		MerchantName: brcode.Cut(brcode.Fold("Fulano de Tal"), brcode.MaxMerchantName),
		City:         brcode.Cut(brcode.Fold("Brasília"), brcode.MaxCity),
		Amount:       1000, // R$ 10.00
		TxID:         "PEDIDO123",
	}.Encode()
	fmt.Println(code, err)
	// Output: 00020126330014br.gov.bcb.pix011112345678909520400005303986540510.005802BR5913Fulano de Tal6008Brasilia62130509PEDIDO1236304D2F2 <nil>
}

func ExampleDynamic_Encode() {
	code, err := brcode.Dynamic{
		URL:          "pix.example.com/qr/v2/8b3da2f39a4140d1a91abd93113bd441",
		MerchantName: "Fulano de Tal",
		City:         "BRASILIA",
	}.Encode()
	fmt.Println(code, err)
	// Output: 00020101021226760014br.gov.bcb.pix2554pix.example.com/qr/v2/8b3da2f39a4140d1a91abd93113bd4415204000053039865802BR5913Fulano de Tal6008BRASILIA62070503***630497BF <nil>
}

func ExampleDecode() {
	code, err := brcode.Decode("00020126580014br.gov.bcb.pix0136123e4567-e12b-12d1-a456-4266554400005204000053039865802BR5913Fulano de Tal6008BRASILIA62070503***63041D3D")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(code.Kind(), code.Key(), code.MerchantName(), code.Amount())
	// Output: STATIC 123e4567-e12b-12d1-a456-426655440000 Fulano de Tal 0
}

func ExampleDecode_error() {
	_, err := brcode.Decode("00020126580014br.gov.bcb.pix0136123e4567-e12b-12d1-a456-4266554400005204000053039865802BR5913Fulano de Tal6008BRASILIA62070503***63041D3E")
	fmt.Println(err)
	var where *brcode.Error
	if errors.As(err, &where) {
		fmt.Println(where.Field, where.Pos, errors.Is(err, brcode.ErrCRC))
	}
	// Output:
	// brcode: field 63: wrong checksum (position 129)
	// 63 129 true
}

func ExampleFold() {
	name := brcode.Fold("Padaria São João & Irmãos – Açaí")
	fmt.Println(name)
	fmt.Println(brcode.Cut(name, brcode.MaxMerchantName))
	// Output:
	// Padaria Sao Joao & Irmaos - Acai
	// Padaria Sao Joao & Irmaos
}
