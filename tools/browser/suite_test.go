package browser_test

import "testing"

// TestPages runs its tests concurrently on the pages of one gateway; each has its own
// merchant.
func TestPages(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	for _, tt := range []struct {
		name string
		test func(t *testing.T, s *shop)
	}{
		{"HomePage", testHomePage},
		{"PIXIsPaidWhileLooking", testPIXIsPaidWhileLooking},
		{"PIXEventIsNotLost", testPIXEventIsNotLost},
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
		{"InvalidTokensRevealNothing", testInvalidTokensRevealNothing},
		{"PayloadsRunNothing", testPayloadsRunNothing},
		{"PayloadsInjectNothing", testPayloadsInjectNothing},
		{"PayloadsAsMerchantsInjectNothing", testPayloadsAsMerchantsInjectNothing},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.test(t, s)
		})
	}
}
