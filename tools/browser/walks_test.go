package browser_test

import "testing"

// TestPages walks the pages of one gateway, all at once: each walk is a
// merchant's of its own.
func TestPages(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	for _, walk := range []struct {
		name string
		test func(t *testing.T, s *shop)
	}{
		{"PIXIsPaidWhileLooking", testPIXIsPaidWhileLooking},
		{"PIXNewsIsNotLost", testPIXNewsIsNotLost},
		{"PIXInDark", testPIXInDark},
		{"PIXOnAPhone", testPIXOnAPhone},
		{"PIXIsCopied", testPIXIsCopied},
		{"PIXWithoutScript", testPIXWithoutScript},
		{"PIXInEnglish", testPIXInEnglish},
		{"BoletoOnTheScreen", testBoletoOnTheScreen},
		{"BoletoOnPaper", testBoletoOnPaper},
		{"BoletoIsPaidWhileLooking", testBoletoIsPaidWhileLooking},
		{"BoletoWithoutScript", testBoletoWithoutScript},
		{"CardIsApproved", testCardIsApproved},
		{"CardIsRefusedAndTriedAgain", testCardIsRefusedAndTriedAgain},
		{"DoubleClickChargesOnce", testDoubleClickChargesOnce},
		{"BackAndReloadChargeOnce", testBackAndReloadChargeOnce},
		{"CardAsksTheBankFirst", testCardAsksTheBankFirst},
		{"CardIsAnalysed", testCardIsAnalysed},
		{"RealCardsAreNotRead", testRealCardsAreNotRead},
		{"EmptyCardFormNamesItsFields", testEmptyCardFormNamesItsFields},
		{"CardByKeyboard", testCardByKeyboard},
		{"PayersGoBackToTheShop", testPayersGoBackToTheShop},
		{"SandboxStrip", testSandboxStrip},
		{"EveryPage", testEveryPage},
		{"Headers", testHeaders},
		{"StrangersLearnNothing", testStrangersLearnNothing},
		{"PayloadsRunNothing", testPayloadsRunNothing},
		{"PayloadsInjectNothing", testPayloadsInjectNothing},
		{"PayloadsAsMerchantsInjectNothing", testPayloadsAsMerchantsInjectNothing},
	} {
		t.Run(walk.name, func(t *testing.T) {
			t.Parallel()
			walk.test(t, s)
		})
	}
}
