package cli_test

import (
	"strings"
	"testing"
)

func TestLimit(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.run(0, "merchant", "create", "Loja")
	const defaults = "\n payout, maximum R$ 10,000.00\n payouts per day R$ 50,000.00\n payouts per night R$ 1,000.00\n payouts to a new key R$ 1,000.00\n hours in which a key is new 24\n"
	for _, row := range []struct {
		args   string
		code   int
		stdout string
		stderr string
	}{
		{"limit show Loja", 0, "The limits of merchant \"Loja\":\n" + defaults, ""},
		{"limit show platform", 0, "The limits of new merchants:\n" + defaults, ""},
		{"limit set platform --payout-maximum none --payout-per-day none --payout-per-night none --new-key-maximum none --new-key-hours none", 0,
			"The limits of new merchants, in effect within 2 seconds:\n\n no limits\n", ""},
		{"merchant create Outra", 0, "*", ""},
		{"limit show Outra", 0, "The limits of merchant \"Outra\":\n\n no limits\n", ""},
		{"limit set Outra --payin-minimum PIX=100 --payin-maximum pix=200 --payin-maximum BOLETO=5 --payout-per-day 0", 0,
			"The limits of merchant \"Outra\", in effect within 2 seconds:\n\n pay-in BOLETO, maximum R$ 0.05\n pay-in PIX, minimum R$ 1.00\n pay-in PIX, maximum R$ 2.00\n payouts per day R$ 0.00\n", ""},
		{"limit set Outra --payin-maximum BOLETO=none --payin-minimum PIX=none --json", 0,
			"{\n \"merchant\": \"Outra\",\n \"payin\": {\n \"PIX\": {\n \"maximum\": 200\n }\n },\n \"payout\": {\n \"perDay\": 0\n }\n}\n", ""},
		{"limit show Loja", 0, "The limits of merchant \"Loja\":\n" + defaults, ""},
		{"limit set Outra --rate 5 --burst 20 --in-flight 3", 0,
			"The limits of merchant \"Outra\", in effect within 2 seconds:\n\n pay-in PIX, maximum R$ 2.00\n payouts per day R$ 0.00\n requests per second 5\n requests at once 20\n requests in flight 3\n", ""},
		{"limit set Outra --burst none --payout-per-day none --json", 0,
			"{\n \"merchant\": \"Outra\",\n \"payin\": {\n \"PIX\": {\n \"maximum\": 200\n }\n },\n \"payout\": {},\n \"requests\": {\n \"rate\": 5,\n \"inFlight\": 3\n }\n}\n", ""},
		{"limit set Outra", 2, "", "porteira: limit set: name at least one limit; porteira limit set --help explains it\n"},
		{"merchant update Outra --json", 2, "", "porteira: merchant update: name at least one field; porteira merchant update --help explains it\n"},
		{"limit set Outra --rate 0", 2, "", "porteira: The limit requests.rate must be 1 to 1000000.\n"},
		{"limit set Outra --payin-minimum PIX=300", 2, "", "porteira: The limit payin.PIX.minimum is above payin.PIX.maximum.\n"},
		{"limit set Outra --payin-minimum TED=300", 2, "", "porteira: \"TED=300\" is not a limit of a method: write PIX=100, in cents, or PIX=none; the methods are PIX, CREDIT_CARD and BOLETO\n"},
		{"limit set Outra --payout-maximum 1.5", 2, "", "*"},
		{"merchant update platform --name Foo", 1, "", "porteira: the platform is not a merchant: porteira merchant list lists all merchants\n"},
		{"credential create platform", 1, "", "porteira: the platform is not a merchant: porteira merchant list lists all merchants\n"},
		{"merchant create Platform", 2, "", "porteira: No merchant may have the name platform: it stands for the platform in commands.\n"},
		{"limit set Nobody --payout-maximum 1", 1, "", "porteira: merchant \"Nobody\" not found: porteira merchant list lists all merchants\n"},
	} {
		stdout, stderr := s.run(row.code, strings.Fields(row.args)...)
		if row.stdout != "*" && stdout != row.stdout || row.stderr != "*" && stderr != row.stderr {
			t.Errorf("%s:\n%q %q, want\n%q %q", row.args, stdout, stderr, row.stdout, row.stderr)
		}
	}
}
