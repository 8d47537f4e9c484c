package boleto_test

import (
	"fmt"
	"time"

	"github.com/porteira/porteira/boleto"
)

func Example() {
	due := time.Date(2026, time.November, 30, 0, 0, 0, 0, time.UTC)
	factor, err := boleto.Factor(due)
	if err != nil {
		panic(err)
	}
	barcode, err := boleto.Bill{Bank: "001", Amount: 12345, Factor: factor, FreeField: "0000001234567000000001017"}.Barcode()
	if err != nil {
		panic(err)
	}
	line, err := boleto.Line(barcode)
	if err != nil {
		panic(err)
	}
	fmt.Println(barcode)
	fmt.Println(boleto.FormatLine(line))
	// Output:
	// 00191164600000123450000001234567000000001017
	// 00190.00009 01234.567004 00000.010173 1 16460000012345
}

func ExampleParseLine() {
	bill, barcode, err := boleto.ParseLine("03399.12347 56712.345679 89012.010107 4 16770000150000")
	if err != nil {
		panic(err)
	}
	today := time.Date(2026, time.November, 21, 0, 0, 0, 0, time.UTC)
	due, err := boleto.Due(bill.Factor, today)
	if err != nil {
		panic(err)
	}
	fmt.Println(barcode, bill.Bank, bill.Amount, due.Format(time.DateOnly))
	// Output: 03394167700001500009123456712345678901201010 033 150000 2026-12-31
}
