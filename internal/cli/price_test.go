package cli_test

import (
	"regexp"
	"strings"
	"testing"
)

// Prices, beside a gateway or without one.
func TestPrices(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	const header = "METHOD INSTALLMENTS BASIS POINTS FIXED MINIMUM MAXIMUM SETTLES REFUNDS FEE SINCE BY\n"
	const set = "Set for new orders. Running gateways follow within 2 seconds.\n\n" + header
	const pix = "PIX 99 R$ 0.10 B+2 TIME os:USER\n"
	const card = "CREDIT_CARD 2-6 299 R$ 0.00 R$ 0.50 R$ 90.00 D+30 per instalment TIME os:USER\n"
	for _, tt := range []struct {
		args   string
		code   int
		stdout string
		stderr string
	}{
		{"merchant create Loja", 0, "*", ""},
		{"price list Loja", 0, "No prices: nothing is charged, and what merchant \"Loja\" receives is available at once. porteira price set sets one.\n", ""},
		{"price set Loja --method PIX --basis-points 99 --fixed 10 --settle B+2", 0, set + pix, ""},
		{"price set Loja --method CREDIT_CARD --installments 2-6 --basis-points 299 --fixed 0 --minimum 50 --maximum 9000 --settle D+30 --per-installment",
			0, set + card + pix, ""},
		{"price set Loja --method PAYOUT --basis-points 0 --fixed 50", 0, set + card + "PAYOUT 0 R$ 0.50 D+0 TIME os:USER\n" + pix, ""},
		{"price set Loja --method PAYOUT --basis-points 0 --fixed 40", 0, set + card + "PAYOUT 0 R$ 0.40 D+0 TIME os:USER\n" + pix, ""},
		{"price set Loja --method PIX --basis-points 99 --fixed 10 --settle X+2", 2, "", "porteira: --settle \"X+2\": write D+n for calendar days or B+n for business days\n"},
		{"price set Loja --method PIX --basis-points 99 --fixed 10", 0, strings.Replace(set, "Set for new orders. Running gateways follow within 2 seconds.", "Unchanged: this price holds already.", 1) + card + "PAYOUT 0 R$ 0.40 D+0 TIME os:USER\n" + pix, ""},
		{"price set Loja --method PIX --basis-points 99 --fixed 0.10", 2, "", "porteira: --fixed: write a whole number of cents: R$ 0.10 is 10; porteira price set --help explains it\n"},
		{"price set Loja --method PIX --basis-points 0.99 --fixed 10", 2, "", "porteira: --basis-points: write a whole number of basis points: 0.99 % is 99; porteira price set --help explains it\n"},
		{"price set Loja --method PIX --basis-points 99 --fixed -10", 2, "", "porteira: --fixed: a value must not begin with -; porteira price set --help explains it\n"},
		{"price set Loja --method CREDIT_CARD --basis-points 99 --fixed 10 --installments two", 2, "", "porteira: --installments \"two\": write FROM-TO, such as 2-6\n"},
		{"price set Loja --method CREDIT_CARD --basis-points 99 --fixed 10 --installments 0", 2, "", "porteira: --installments \"0\": write FROM-TO, such as 2-6\n"},
		{"price set Loja --method PIX --basis-points 10001 --fixed 0 --settle D+0", 2, "", "porteira: Basis points must be between 0 and 10000.\n"},
		{"price set Loja --method PIX --basis-points 9 --fixed 0 --settle B+0", 2, "", "porteira: Money settles after one business day or more; D+0 is at once.\n"},
		{"price set Loja --method CREDIT_CARD --basis-points 99 --fixed 10 --installments 5-9 --settle D+0", 2, "",
			"porteira: Instalments 5-9 overlap those of the price for 2-6, and neither range is inside the other. Set a price for 5-6 and one for 7-9 instead.\n"},
		{"price set Nobody --method PIX --basis-points 9 --fixed 0 --settle D+0", 1, "", "*"},
		{"price list Loja --json", 0, "[\n {\n \"method\": \"CREDIT_CARD\",\n \"installmentsFrom\": 2,\n \"installmentsTo\": 6,\n \"basisPoints\": 299,\n \"fixed\": 0,\n \"minimum\": 50,\n" +
			" \"maximum\": 9000,\n \"settle\": \"D+30\",\n \"perInstallment\": true,\n \"refundsFee\": false,\n \"since\": \"TIME\",\n \"changedBy\": \"os:USER\"\n },\n*", ""},
		{"price set Loja --method BOLETO --basis-points 0 --fixed 90 --refunds-fee --settle D+0", 0, set + "BOLETO 0 R$ 0.90 D+0 yes TIME os:USER\n" + card + "PAYOUT 0 R$ 0.40 D+0 TIME os:USER\n" + pix, ""},
	} {
		stdout, stderr := s.run(tt.code, strings.Fields(tt.args)...)
		stdout = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`).ReplaceAllString(stdout, "TIME")
		want, open := strings.CutSuffix(tt.stdout, "*")
		if open {
			stdout = stdout[:min(len(stdout), len(want))]
		}
		if stdout != want || tt.stderr != "*" && stderr != tt.stderr {
			t.Errorf("%s says\n%s%s\nwant\n%s%s", tt.args, stdout, stderr, tt.stdout, tt.stderr)
		}
	}
}

func first(stdout, _ string) string { return stdout }
