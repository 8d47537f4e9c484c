package wire

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/porteira/porteira/internal/payment"
)

var sandboxRules = Rules{AllowHTTP: true, ReturnHosts: []string{"shop.example"}, Today: "2026-03-01"}

// goodPayin has every field that a PIX may have.
func goodPayin() *PayinRequest {
	return &PayinRequest{
		Method: Some("PIX"), Amount: Some[int64](12345), ReferenceID: Some("pedido-1"),
		WebhookURL: Some("https://shop.example/hook?a=b"),
		Customer: Some(CustomerRequest{
			Name: Some("Maria da Silva"), Email: Some("maria@example.com"), Document: Some("52998224725"),
			Phone: Some("11987654321"),
			Address: Some(AddressRequest{
				Street: Some("Rua das Flores"), Number: Some("10"), Complement: Some("ap 2"),
				Neighborhood: Some("Centro"), City: Some("São Paulo"), State: Some("SP"),
				ZipCode: Some("01001-000"), Country: Some("BR"),
			}),
		}),
		Items: Some([]ItemRequest{
			{Some("Livro"), Some[int64](1), Some[int64](12345), Some(true)},
			{Some("Brinde"), Some[int64](1_000_000), Some[int64](0), Some(false)},
		}),
		ExpiresIn: Some[int64](60), Description: Some("Pedido 1"),
		Metadata: Some(map[string]string{"loja": "centro"}), ReturnURL: Some("https://shop.example/back"),
	}
}

func address(change func(a *AddressRequest)) func(r *PayinRequest) {
	return func(r *PayinRequest) { change(&r.Customer.V.Address.V) }
}

func customer(change func(c *CustomerRequest)) func(r *PayinRequest) {
	return func(r *PayinRequest) { change(&r.Customer.V) }
}

type payinCase struct {
	name   string
	change func(r *PayinRequest)
	want   string // invalid fields, separated by commas
}

func runPayinCases(t *testing.T, rules Rules, cases []payinCase) {
	t.Helper()
	for _, tt := range cases {
		r := goodPayin()
		tt.change(r)
		var errs Errors
		r.Check(rules, &errs)
		var want []string
		if tt.want != "" {
			want = strings.Split(tt.want, ", ")
		}
		wantInvalid(t, tt.name, &errs, want...)
	}
}

func TestPayinOrder(t *testing.T) {
	t.Parallel()
	runPayinCases(t, sandboxRules, []payinCase{
		{"good", func(*PayinRequest) {}, ""},
		{"nothing", func(r *PayinRequest) { *r = PayinRequest{} },
			"paymentMethod required, amount required, referenceId required, customer required"},
		{"method", func(r *PayinRequest) { r.Method.V = "pix" }, "paymentMethod not_allowed"},
		{"no method", func(r *PayinRequest) { r.Method.V = "" }, "paymentMethod required"},
		{"amount 0", func(r *PayinRequest) { r.Amount.V = 0 }, "amount out_of_range"},
		{"amount -1", func(r *PayinRequest) { r.Amount.V = -1 }, "amount out_of_range"},
		{"amount 1", func(r *PayinRequest) { r.Amount.V = 1 }, ""},
		{"largest amount", func(r *PayinRequest) { r.Amount.V = 99_999_999_999 }, ""},
		{"more", func(r *PayinRequest) { r.Amount.V = 100_000_000_000 }, "amount out_of_range"},
		{"reference", func(r *PayinRequest) { r.ReferenceID.V = "" }, "referenceId required"},
		{"blank reference", func(r *PayinRequest) { r.ReferenceID.V = " \u00a0" }, "referenceId required"},
		{"long reference", func(r *PayinRequest) { r.ReferenceID.V = strings.Repeat("é", 129) }, "referenceId too_long"},
		{"128 characters", func(r *PayinRequest) { r.ReferenceID.V = strings.Repeat("é", 128) }, ""},
		{"control in reference", func(r *PayinRequest) { r.ReferenceID.V = "a\tb" }, "referenceId invalid_format"},
		{"description", func(r *PayinRequest) { r.Description.V = strings.Repeat("ç", 141) }, "description too_long"},
		{"140 characters", func(r *PayinRequest) { r.Description.V = strings.Repeat("ç", 140) }, ""},
		{"empty description", func(r *PayinRequest) { r.Description.V = "" }, "description too_short"},
		{"card in description", func(r *PayinRequest) { r.Description.V = "cartão 4111 1111 1111 1111" }, "description not_allowed"},
		{"21 pairs", func(r *PayinRequest) { r.Metadata.V = pairs(21) }, "metadata too_long"},
		{"20 pairs", func(r *PayinRequest) { r.Metadata.V = pairs(20) }, ""},
		{"long key", func(r *PayinRequest) { r.Metadata.V = map[string]string{strings.Repeat("k", 41): "v"} },
			`metadata["` + strings.Repeat("k", 40) + `..."] too_long`},
		{"no key", func(r *PayinRequest) { r.Metadata.V = map[string]string{"": "v"} }, `metadata[""] too_short`},
		{"control in key", func(r *PayinRequest) { r.Metadata.V = map[string]string{"a\n": "v"} }, `metadata["a\n"] invalid_format`},
		{"card as key", func(r *PayinRequest) { r.Metadata.V = map[string]string{"5555555555554444": "v"} }, "metadata[...] not_allowed"},
		{"long value", func(r *PayinRequest) { r.Metadata.V["loja"] = strings.Repeat("v", 501) }, "metadata.loja too_long"},
		{"500 characters", func(r *PayinRequest) { r.Metadata.V["loja"] = strings.Repeat("v", 500) }, ""},
		{"empty value", func(r *PayinRequest) { r.Metadata.V["loja"] = "" }, "metadata.loja too_short"},
		{"card as value", func(r *PayinRequest) { r.Metadata.V["loja"] = "378282246310005" }, "metadata.loja not_allowed"},
	})
}

func pairs(n int) map[string]string {
	m := make(map[string]string)
	for i := range n {
		m[fmt.Sprint("key", i)] = "value"
	}
	return m
}

func TestPayinMethodFields(t *testing.T) {
	t.Parallel()
	as := func(m payment.Method, change func(r *PayinRequest)) func(r *PayinRequest) {
		return func(r *PayinRequest) {
			r.Method.V = string(m)
			r.ExpiresIn = Field[int64]{}
			change(r)
		}
	}
	due := func(day string) func(r *PayinRequest) {
		return as(payment.Boleto, func(r *PayinRequest) { r.DueDate = Some(day) })
	}
	runPayinCases(t, sandboxRules, []payinCase{
		{"59 s", func(r *PayinRequest) { r.ExpiresIn.V = 59 }, "expiresIn out_of_range"},
		{"30 days", func(r *PayinRequest) { r.ExpiresIn.V = 30 * 86400 }, ""},
		{"30 days and 1 s", func(r *PayinRequest) { r.ExpiresIn.V = 30*86400 + 1 }, "expiresIn out_of_range"},
		{"expiresIn of a bill", as(payment.Boleto, func(r *PayinRequest) { r.ExpiresIn = Some[int64](60) }), "expiresIn not_allowed"},
		{"expiresIn of a card", as(payment.CreditCard, func(r *PayinRequest) { r.ExpiresIn = Some[int64](0) }), "expiresIn not_allowed"},
		{"dueDate of PIX", func(r *PayinRequest) { r.DueDate = Some("x") }, "dueDate not_allowed"},
		{"installments of PIX", func(r *PayinRequest) { r.Installments = Some[int64](2) }, "installments not_allowed"},
		{"installments of a bill", as(payment.Boleto, func(r *PayinRequest) { r.Installments = Some[int64](2) }), "installments not_allowed"},
		{"due today", due("2026-03-01"), ""},
		{"due yesterday", due("2026-02-28"), "dueDate out_of_range"},
		{"due in a year", due("2027-03-01"), ""},
		{"due in a year and a day", due("2027-03-02"), "dueDate out_of_range"},
		{"due on a day that does not exist", due("2026-02-29"), "dueDate invalid_format"},
		{"due at a time", due("2026-03-02T00:00:00Z"), "dueDate invalid_format"},
		{"empty due date", due(""), "dueDate invalid_format"},
		{"largest bill", as(payment.Boleto, func(r *PayinRequest) { r.Amount.V = 9_999_999_999 }), ""},
		{"larger bill", as(payment.Boleto, func(r *PayinRequest) { r.Amount.V = 10_000_000_000 }), "amount out_of_range"},
		{"1 instalment", as(payment.CreditCard, func(r *PayinRequest) { r.Installments = Some[int64](1) }), ""},
		{"12 instalments", as(payment.CreditCard, func(r *PayinRequest) { r.Installments = Some[int64](12) }), ""},
		{"13 instalments", as(payment.CreditCard, func(r *PayinRequest) { r.Installments = Some[int64](13) }), "installments out_of_range"},
		{"no instalment", as(payment.CreditCard, func(r *PayinRequest) { r.Installments = Some[int64](0) }), "installments out_of_range"},
		{"unknown method: each field has its own limits", func(r *PayinRequest) {
			r.Method.V, r.ExpiresIn.V, r.DueDate, r.Installments = "CASH", 1, Some("x"), Some[int64](99)
		}, "paymentMethod not_allowed, expiresIn out_of_range, dueDate invalid_format, installments out_of_range"},
	})
}

func TestPayinCustomer(t *testing.T) {
	t.Parallel()
	runPayinCases(t, sandboxRules, []payinCase{
		{"only required fields", func(r *PayinRequest) {
			r.Customer.V = CustomerRequest{Name: Some("M"), Document: Some("12ABC34501DE35")}
		}, ""},
		{"empty", func(r *PayinRequest) { r.Customer.V = CustomerRequest{} }, "customer.name required, customer.document required"},
		{"name", customer(func(c *CustomerRequest) { c.Name.V = strings.Repeat("é", 256) }), "customer.name too_long"},
		{"255 characters", customer(func(c *CustomerRequest) { c.Name.V = strings.Repeat("é", 255) }), ""},
		{"NUL in name", customer(func(c *CustomerRequest) { c.Name.V = "a\x00" }), "customer.name invalid_format"},
		{"document with punctuation", customer(func(c *CustomerRequest) { c.Document.V = "529.982.247-25" }), "customer.document invalid_format"},
		{"the sandbox ignores check digits", customer(func(c *CustomerRequest) { c.Document.V = "52998224724" }), ""},
		{"small letters", customer(func(c *CustomerRequest) { c.Document.V = "12abc34501de35" }), "customer.document invalid_format"},
		{"email", customer(func(c *CustomerRequest) { c.Email.V = "maria" }), "customer.email invalid_format"},
		{"no email", customer(func(c *CustomerRequest) { c.Email.V = "" }), "customer.email too_short"},
		{"long email", customer(func(c *CustomerRequest) { c.Email.V = strings.Repeat("a", 250) + "@a.br" }), "customer.email too_long"},
		{"phone of 9", customer(func(c *CustomerRequest) { c.Phone.V = "987654321" }), "customer.phone invalid_format"},
		{"phone of 14", customer(func(c *CustomerRequest) { c.Phone.V = "55119876543210" }), "customer.phone invalid_format"},
		{"phone of 13", customer(func(c *CustomerRequest) { c.Phone.V = "5511987654321" }), ""},
		{"phone with plus", customer(func(c *CustomerRequest) { c.Phone.V = "+551198765432" }), ""},
		{"phone with plus, of 9", customer(func(c *CustomerRequest) { c.Phone.V = "+987654321" }), "customer.phone invalid_format"},
		{"phone with two", customer(func(c *CustomerRequest) { c.Phone.V = "++551198765432" }), "customer.phone invalid_format"},
		{"empty address", customer(func(c *CustomerRequest) { c.Address.V = AddressRequest{} }), ""},
		{"state", address(func(a *AddressRequest) { a.State.V = "XX" }), "customer.address.state invalid_format"},
		{"state that is SP in capitals only for Unicode", address(func(a *AddressRequest) { a.State.V = "\u017fp" }), "customer.address.state invalid_format"},
		{"small state", address(func(a *AddressRequest) { a.State.V = "sP" }), ""},
		{"zip code", address(func(a *AddressRequest) { a.ZipCode.V = "01001000" }), ""},
		{"zip code, odd hyphen", address(func(a *AddressRequest) { a.ZipCode.V = "010010-00" }), "customer.address.zipCode invalid_format"},
		{"zip code of 7", address(func(a *AddressRequest) { a.ZipCode.V = "0100100" }), "customer.address.zipCode invalid_format"},
		{"small country", address(func(a *AddressRequest) { a.Country.V = "br" }), ""},
		{"country", address(func(a *AddressRequest) { a.Country.V = "AR" }), "customer.address.country not_allowed"},
		{"blank name", customer(func(c *CustomerRequest) { c.Name.V = " \u00a0\u2003\u200b\u3164\u2800\ufe0f" }), "customer.name required"},
		{"name with blanks around it", customer(func(c *CustomerRequest) { c.Name.V = " Ana\u200e " }), ""},
		{"name with an override", customer(func(c *CustomerRequest) { c.Name.V = "Ana \u2066airaM" }), "customer.name invalid_format"},
		{"blank address", address(func(a *AddressRequest) { a.Street.V, a.Number.V, a.City.V = " ", "\u2060", "\u115f" }),
			"customer.address.street too_short, customer.address.number too_short, customer.address.city too_short"},
		{"every field empty", address(func(a *AddressRequest) {
			empty := Some("")
			*a = AddressRequest{empty, empty, empty, empty, empty, empty, empty, empty}
		}), "customer.address.street too_short, customer.address.number too_short, customer.address.complement too_short, " +
			"customer.address.neighborhood too_short, customer.address.city too_short, customer.address.state too_short, " +
			"customer.address.zipCode too_short, customer.address.country too_short"},
	})
	strict := sandboxRules
	strict.ChecksDocuments = true
	runPayinCases(t, strict, []payinCase{
		{"right check digits", func(*PayinRequest) {}, ""},
		{"wrong check digits", customer(func(c *CustomerRequest) { c.Document.V = "52998224724" }), "customer.document invalid_format"},
		{"one digit repeated", customer(func(c *CustomerRequest) { c.Document.V = "11111111111" }), "customer.document invalid_format"},
	})
}

func TestPayinItems(t *testing.T) {
	t.Parallel()
	item := func(change func(i *ItemRequest)) func(r *PayinRequest) {
		return func(r *PayinRequest) { change(&r.Items.V[1]) }
	}
	runPayinCases(t, sandboxRules, []payinCase{
		{"none", func(r *PayinRequest) { r.Items.V = nil }, ""},
		{"500", func(r *PayinRequest) { r.Items.V = manyItems(500) }, ""},
		{"501", func(r *PayinRequest) { r.Items.V = manyItems(501) }, "items too_long"},
		{"empty", item(func(i *ItemRequest) { *i = ItemRequest{} }),
			"items[1].title required, items[1].quantity required, items[1].unitPrice required, items[1].tangible required"},
		{"title", item(func(i *ItemRequest) { i.Title.V = strings.Repeat("t", 256) }), "items[1].title too_long"},
		{"blank title", item(func(i *ItemRequest) { i.Title.V = "\u200b " }), "items[1].title required"},
		{"card in title", item(func(i *ItemRequest) { i.Title.V = "4111111111111111" }), "items[1].title not_allowed"},
		{"quantity 0", item(func(i *ItemRequest) { i.Quantity.V = 0 }), "items[1].quantity out_of_range"},
		{"quantity", item(func(i *ItemRequest) { i.Quantity.V = 1_000_001 }), "items[1].quantity out_of_range"},
		{"price", item(func(i *ItemRequest) { i.UnitPrice.V = -1 }), "items[1].unitPrice out_of_range"},
		{"high price", item(func(i *ItemRequest) { i.UnitPrice.V = 100_000_000_000 }), "items[1].unitPrice out_of_range"},
	})
}

func manyItems(n int) []ItemRequest {
	items := make([]ItemRequest, n)
	for i := range items {
		items[i] = goodPayin().Items.V[0]
	}
	return items
}

func TestPayinURLs(t *testing.T) {
	t.Parallel()
	hook := func(u string) func(r *PayinRequest) { return func(r *PayinRequest) { r.WebhookURL.V = u } }
	back := func(u string) func(r *PayinRequest) { return func(r *PayinRequest) { r.ReturnURL.V = u } }
	production := sandboxRules
	production.AllowHTTP, production.WebhookPorts = false, []uint16{80, 443}
	runPayinCases(t, production, []payinCase{
		{"http", hook("http://shop.example/hook"), "webhookUrl invalid_format"},
		{"upper case scheme", hook("HTTPS://shop.example/hook"), ""},
		{"port", hook("https://shop.example:8443/hook"), "webhookUrl not_allowed"},
		{"port of IPv6", hook("https://[2606:4700::1111]:444/hook"), "webhookUrl not_allowed"},
		{"named port", hook("https://shop.example:443/hook"), ""},
		{"port of http", hook("https://shop.example:0080/hook"), ""},
		{"return to a port", back("https://shop.example:8443/x"), ""},
	})
	runPayinCases(t, sandboxRules, []payinCase{
		{"http", hook("http://127.0.0.1:9999/hook"), ""},
		{"IPv6", hook("http://[::1]:9999/hook"), ""},
		{"ftp", hook("ftp://shop.example/"), "webhookUrl invalid_format"},
		{"script", hook("javascript:alert(1)"), "webhookUrl invalid_format"},
		{"relative", hook("/hook"), "webhookUrl invalid_format"},
		{"no scheme", hook("//shop.example/hook"), "webhookUrl invalid_format"},
		{"no host", hook("https:///hook"), "webhookUrl invalid_format"},
		{"only a port", hook("https://:443/hook"), "webhookUrl invalid_format"},
		{"port 65536", hook("https://shop.example:65536/"), "webhookUrl invalid_format"},
		{"port 0", hook("https://shop.example:0/"), "webhookUrl invalid_format"},
		{"empty port", hook("https://shop.example:/"), "webhookUrl invalid_format"},
		{"zone", hook("https://[fe80::1%25eth0]/"), "webhookUrl invalid_format"},
		{"invisible character", hook("https://shop.example/\u200b"), "webhookUrl invalid_format"},
		{"user", hook("https://user@shop.example/"), "webhookUrl not_allowed"},
		{"password", hook("https://u:p@shop.example/"), "webhookUrl not_allowed"},
		{"blank", hook("https://shop.example/a b"), "webhookUrl invalid_format"},
		{"backslash", hook(`https://shop.example\@evil.example/`), "webhookUrl invalid_format"},
		{"line break", hook("https://shop.example/\r\nX: y"), "webhookUrl invalid_format"},
		{"empty", hook(""), "webhookUrl too_short"},
		{"2048 characters", hook("https://shop.example/" + strings.Repeat("a", 2048-21)), ""},
		{"2049 characters", hook("https://shop.example/" + strings.Repeat("a", 2049-21)), "webhookUrl too_long"},
		{"card number", hook("https://shop.example/4111%201111%201111%201111"), "webhookUrl not_allowed"},
		{"card number in the query", hook("https://shop.example/?n=4111%2D1111%2d1111%2D1111"), "webhookUrl not_allowed"},
		{"card number with an escaped digit", hook("https://shop.example/?n=%34111111111111111"), "webhookUrl not_allowed"},
		{"escapes at the end", hook("https://shop.example/?n=%41%zz%4"), ""},
		{"return with a card number", back("http://shop.example/?n=411111111111%31%31%31%31"), "returnUrl not_allowed"},
		{"return to a port", back("http://SHOP.example:8080/x"), ""},
		{"return elsewhere", back("https://evil.example/"), "returnUrl not_allowed"},
		{"return below", back("https://shop.example.evil.example/"), "returnUrl not_allowed"},
		{"return nowhere", back("x"), "returnUrl invalid_format"},
	})
}

func TestEmail(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"a@b.co": true, "maria.silva+loja@sub.example.com.br": true, "joão@exemplo.com.br": true,
		"a@b": false, "@b.co": false, "a@": false, "a@b..co": false, "a@b.co.": false, "a b@c.de": false,
		"a@@b.co": false, "a@b@c.de": false, "a@-b.co": false, "<a@b.co>": false, "a,b@c.de": false, "a@b .co": false,
	} {
		if got := looksLikeEmail(text); got != want {
			t.Errorf("looksLikeEmail(%q) = %v", text, got)
		}
	}
}

func TestPayinTimes(t *testing.T) {
	t.Parallel()
	at := func(text string) time.Time {
		parsed, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	for _, tt := range []struct {
		request      PayinRequest
		now, expires string
		due          string
	}{
		{PayinRequest{Method: Some("PIX")}, "2026-03-01T12:00:00Z", "2026-03-02T12:00:00Z", ""},
		{PayinRequest{Method: Some("PIX"), ExpiresIn: Some[int64](90)}, "2026-03-01T12:00:00Z", "2026-03-01T12:01:30Z", ""},
		{PayinRequest{Method: Some("CREDIT_CARD")}, "2026-12-31T23:00:00Z", "2027-01-01T23:00:00Z", ""},
		{PayinRequest{Method: Some("BOLETO")}, "2026-03-01T12:00:00Z", "2026-04-04T03:00:00Z", "2026-03-04"},
		// In São Paulo it is still the day before, and still the year before.
		{PayinRequest{Method: Some("BOLETO")}, "2027-01-01T02:59:59Z", "2027-02-03T03:00:00Z", "2027-01-03"},
		{PayinRequest{Method: Some("BOLETO")}, "2027-01-01T03:00:00Z", "2027-02-04T03:00:00Z", "2027-01-04"},
		{PayinRequest{Method: Some("BOLETO"), DueDate: Some("2028-01-30")}, "2027-06-01T00:00:00Z", "2028-03-01T03:00:00Z", "2028-01-30"},
		{PayinRequest{Method: Some("BOLETO")}, "2028-02-27T12:00:00Z", "2028-04-01T03:00:00Z", "2028-03-01"},
	} {
		now := at(tt.now)
		if got := tt.request.Due(now); got != tt.due {
			t.Errorf("%+v at %s is due on %q, want %q", tt.request.Method, tt.now, got, tt.due)
		}
		if got := tt.request.ExpiresAt(now); !got.Equal(at(tt.expires)) || got.Location() != time.UTC {
			t.Errorf("%+v at %s expires at %v, want %s", tt.request.Method, tt.now, got, tt.expires)
		}
	}
	if payment.DayOf(at("2026-03-01T02:00:00Z")) != "2026-02-28" {
		t.Error("the day in São Paulo is not three hours behind")
	}
}

// No text makes Check panic, loop or repeat the value.
func TestPayinNeverRepeatsValues(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const canary = "cAnArY"
		r := goodPayin()
		texts := []*Field[string]{
			&r.Method, &r.ReferenceID, &r.WebhookURL, &r.DueDate, &r.Description, &r.ReturnURL,
			&r.Customer.V.Name, &r.Customer.V.Email, &r.Customer.V.Document, &r.Customer.V.Phone,
			&r.Customer.V.Address.V.Street, &r.Customer.V.Address.V.State, &r.Customer.V.Address.V.ZipCode,
			&r.Items.V[0].Title,
		}
		for _, f := range texts {
			if rapid.Bool().Draw(t, "change") {
				*f = Some(rapid.String().Draw(t, "before") + canary + rapid.String().Draw(t, "after"))
			}
		}
		rules := sandboxRules
		rules.ChecksDocuments = rapid.Bool().Draw(t, "strict")
		var errs Errors
		r.Check(rules, &errs)
		for _, e := range errs.List() {
			if strings.Contains(e.Field+e.Detail, canary) {
				t.Fatalf("the error repeats the value: %+v", e)
			}
		}
	})
}
