package wire

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
)

// item is a payout of a batch in JSON, with a reference.
func item(reference string) string {
	return strings.Replace(minimalPayout, `"r1"`, `"`+reference+`"`, 1)
}

func batch(items ...string) string {
	return `{"referenceId":"b","items":[` + strings.Join(items, ",") + `]}`
}

// described is a refusal as one text: kind, fields with codes, and whether there are more.
func described(e *problem.Error) string {
	if e == nil {
		return ""
	}
	list := []string{string(e.Kind)}
	for _, f := range e.Fields {
		list = append(list, f.Field+" "+f.Code)
	}
	if e.Truncated {
		list = append(list, "truncated")
	}
	return strings.Join(list, ", ")
}

func TestPayoutBatch(t *testing.T) {
	t.Parallel()
	many := make([]string, BatchItemsMax+1)
	for i := range many {
		many[i] = item(fmt.Sprint("r", i))
	}
	wrong := strings.Replace(item("w"), `"EMAIL"`, `"CPF"`, 1)
	for _, row := range []struct{ name, body, want string }{
		{"one", batch(item("a")), ""},
		{"the most", batch(many[:BatchItemsMax]...), ""},
		{"more", batch(many...), "validation_failed, items too_long"},
		{"white space, members in any order", " {\n\"items\" : [ " + item("a") + " ] , \"referenceId\":\"b\" } \n", ""},
		{"none", batch(), "validation_failed, items too_short"},
		{"nothing", "{}", "validation_failed, referenceId required, items required"},
		{"null", `{"referenceId":null,"items":null}`, "validation_failed, referenceId required, items required"},
		{"wrong types", `{"referenceId":1,"items":{}}`, "validation_failed, referenceId invalid_type, items invalid_type"},
		{"an item of another type", batch(item("a"), "1", "null", "[]"), "validation_failed, items[1] invalid_type, items[2] invalid_type, items[3] invalid_type"},
		{"an invalid item", batch(item("a"), wrong), "validation_failed, items[1].pixKey invalid_format"},
		{"an empty item", batch("{}"), "validation_failed, items[0].amount required, items[0].pixKeyType required, items[0].pixKey required, " +
			"items[0].beneficiaryName required, items[0].beneficiaryDocument required, items[0].referenceId required"},
		{"references twice", batch(item("a"), item("b"), item("a"), item("a")), "validation_failed, items[2].referenceId not_allowed, items[3].referenceId not_allowed"},
		{"an unknown field", strings.Replace(batch(item("a")), "{", `{"x":[1],`, 1), "unknown_field, x unknown_field"},
		{"an unknown field of an item", batch(item("a"), strings.Replace(wrong, "{", `{"a b":1,`, 1)), `unknown_field, items[1]["a b"] unknown_field, items[1].pixKey invalid_format`},
		{"a duplicate field", strings.Replace(batch(item("a")), "{", `{"referenceId":"c",`, 1), "duplicate_field, referenceId not_allowed"},
		{"a duplicate field of an item", batch(item("a"), strings.Replace(item("c"), "{", `{"amount":1,`, 1)), "duplicate_field, items[1].amount not_allowed"},
		{"a card number", strings.Replace(batch(item("a")), `"b"`, `"4111111111111111"`, 1), "validation_failed, referenceId not_allowed"},
		{"empty", "", "malformed_json"},
		{"an array", "[]", "malformed_json"},
		{"half", batch(item("a"))[:40], "malformed_json"},
		{"more after it", batch(item("a")) + "{}", "malformed_json"},
		{"invalid UTF-8", strings.Replace(batch(item("a")), `"b"`, "\"\xff\"", 1), "malformed_json"},
		{"a byte order mark", "\xef\xbb\xbf" + batch(item("a")), ""},
		{"an item nested too deep", batch(strings.Replace(item("a"), "{", `{"x":`+strings.Repeat("[", 9)+strings.Repeat("]", 9)+`,`, 1)), "malformed_json"},
	} {
		r, invalid := testDecoder.PayoutBatch([]byte(row.body))
		if got := described(invalid); got != row.want {
			t.Errorf("%s: %s, want %s (%v)", row.name, got, row.want, invalid)
		}
		if row.want == "" && (r.ReferenceID.V != "b" || len(r.Items) == 0 || r.Items[0].NormalKey == "" || len(r.Items[0].Fingerprint) == 0) {
			t.Errorf("%s: %+v", row.name, r)
		}
	}
	var all []string
	for i := range 101 {
		all = append(all, strings.Replace(item(fmt.Sprint("r", i)), `"amount":100`, `"amount":0`, 1))
	}
	_, invalid := testDecoder.PayoutBatch([]byte(batch(all...)))
	if invalid == nil || len(invalid.Fields) != 100 || !invalid.Truncated || invalid.Fields[99].Field != "items[99].amount" {
		t.Errorf("101 invalid items: %s", described(invalid))
	}
}

// A body is not read beyond a limit that it has passed: here the rest is malformed. One that
// may repeat an accepted batch is read to its end.
func TestPayoutBatchIsCut(t *testing.T) {
	t.Parallel()
	const half = `{"x`
	repeat := func(n int, of func(i int) string) string {
		list := make([]string, n)
		for i := range list {
			list[i] = of(i)
		}
		return strings.Join(list, ",")
	}
	good := func(i int) string { return item(fmt.Sprint("r", i)) }
	invalid := func(i int) string { return strings.Replace(good(i), `"amount":100`, `"amount":0`, 1) }
	unknown := func(i int) string { return fmt.Sprintf(`"x%d":1`, i) }
	for _, row := range []struct {
		name, body string
		kind       problem.Kind
		fields     int
		items      int
	}{
		{"entries", `{"items":[` + repeat(BatchItemsMax+1, good) + half, problem.ValidationFailed, 1, BatchItemsMax},
		{"entries that are no objects", `{"items":[` + repeat(BatchItemsMax, func(int) string { return "1" }) + half, problem.ValidationFailed, errorsMax, errorsMax + 1},
		{"entries of wrong types", `{"items":[` + repeat(200, func(i int) string { return strings.Replace(good(i), "100", "[]", 1) }) + half, problem.ValidationFailed, errorsMax, errorsMax + 1},
		{"unknown names", `{` + repeat(errorsMax+1, unknown) + half, problem.UnknownField, errorsMax, 0},
		{"unknown names of an entry", `{"referenceId":"b","items":[{` + repeat(errorsMax+1, unknown) + `},` + half, problem.UnknownField, errorsMax, 1},
		{"unknown names of entries", `{"items":[` + repeat(errorsMax+1, func(i int) string { return strings.Replace(good(i), "{", `{"x":1,`, 1) }) + half, problem.UnknownField, errorsMax, errorsMax + 1},
		{"unknown names up to the limit", `{` + repeat(errorsMax, unknown) + `,"items":[]}` + half, problem.MalformedJSON, 0, 0},
		{"a name twice", `{"x":1,"x":1` + half, problem.DuplicateField, 1, 0},
		{"invalid entries", `{"referenceId":"b","items":[` + repeat(errorsMax+1, invalid) + half, problem.MalformedJSON, 0, errorsMax + 1},
	} {
		r, e := testDecoder.PayoutBatch([]byte(row.body))
		if e == nil || e.Kind != row.kind || len(e.Fields) != row.fields || len(r.Items) != row.items || r.MayRepeat(e) {
			t.Errorf("%s: %.200s with %d fields, %d items were read, may repeat: %v", row.name, described(e), len(e.Fields), len(r.Items), r.MayRepeat(e))
		}
	}
	row := func(i int) string { return fmt.Sprintf("r%d,x,EMAIL,m@example.com,Maria,52998224725\n", i) }
	body := csvHeader
	for i := range errorsMax + 1 {
		body += row(i)
	}
	r, e := testDecoder.PayoutBatchCSV(Some("b"), false, []byte(body+`"`))
	if described(e) == "" || e.Kind != problem.ValidationFailed || len(e.Fields) != errorsMax || r.MayRepeat(e) {
		t.Errorf("CSV: %.200s", described(e))
	}
	body = csvHeader
	for i := range BatchItemsMax + 1 {
		body += strings.Replace(row(i), "x", "1", 1)
	}
	if r, e = testDecoder.PayoutBatchCSV(Some("b"), false, []byte(body+`"`)); described(e) != "validation_failed, items too_long" || r.MayRepeat(e) {
		t.Errorf("CSV with too many rows: %.200s", described(e))
	}
}

// Bodies of the largest size whose parts are all small, or all invalid.
func BenchmarkHostilePayoutBatch(b *testing.B) {
	const size = 4 << 20
	fill := func(before, part, after string) []byte {
		return []byte(before + strings.Repeat(part, (size-len(before)-len(after))/len(part)) + after)
	}
	names := &strings.Builder{}
	for i := 0; names.Len() < size-100; i++ {
		fmt.Fprintf(names, `"%07d":1,`, i)
	}
	for name, body := range map[string][]byte{
		"unknown names":           []byte("{" + names.String() + `"x":1}`),
		"names of an unknown":     []byte(`{"x":{` + names.String() + `"x":1}}`),
		"names of an item":        []byte(`{"items":[{` + names.String() + `"x":1}]}`),
		"numbers":                 fill(`{"items":[1`, ",1", "]}"),
		"numbers of an unknown":   fill(`{"x":[1`, ",1", "]}"),
		"objects":                 fill(`{"items":[{}`, ",{}", "]}"),
		"amounts of a wrong type": fill(`{"items":[{}`, `,{"amount":[`+strings.Repeat("1,", 8000)+"1]}", "]}"),
		"invalid items":           fill(`{"items":[{}`, `,`+item("r"), "]}"),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, invalid := testDecoder.PayoutBatch(body); invalid == nil {
					b.Fatal("accepted")
				}
			}
		})
	}
	for name, body := range map[string][]byte{"empty lines": fill(csvHeader, "\n", "a"), "rows": fill(csvHeader, "a,0,,,,\n", ""), "commas": fill(csvHeader, ",", "")} {
		b.Run("CSV/"+name, func(b *testing.B) {
			for b.Loop() {
				if _, invalid := testDecoder.PayoutBatchCSV(Some("b"), false, body); invalid == nil {
					b.Fatal("accepted")
				}
			}
		})
	}
}

const csvHeader = "referenceId,amount,pixKeyType,pixKey,beneficiaryName,beneficiaryDocument\n"

func TestPayoutBatchCSV(t *testing.T) {
	t.Parallel()
	const good = csvHeader + "a,100,EMAIL,m@example.com,Maria,52998224725\n"
	for _, row := range []struct{ name, body, want string }{
		{"one", good, ""},
		{"carriage returns, a byte order mark, no last line end", "\xef\xbb\xbf" + strings.TrimSuffix(strings.ReplaceAll(good, "\n", "\r\n"), "\r\n"), ""},
		{"quotes and commas", strings.Replace(good, "Maria", `"Maria ""M"" da Silva, ME"`, 1), ""},
		{"another order, and an empty cell", "webhookUrl," + strings.Replace(good, "\na,", "\n,a,", 1), ""},
		{"no rows", csvHeader, "validation_failed, items too_short"},
		{"empty cells", csvHeader + "a,100,EMAIL,m@example.com,Maria,\nb,,,,,\n", "validation_failed, items[0].beneficiaryDocument required, items[1].amount required, " +
			"items[1].pixKeyType required, items[1].pixKey required, items[1].beneficiaryName required, items[1].beneficiaryDocument required"},
		{"amounts that are no integers", csvHeader + "a,1.00,EMAIL,m@example.com,Maria,52998224725\nb,01,EMAIL,m@example.com,Maria,52998224725\nc, 1,EMAIL,m@example.com,Maria,52998224725\n",
			"validation_failed, items[0].amount invalid_type, items[1].amount invalid_type, items[2].amount invalid_type"},
		{"amounts out of range", csvHeader + "a,-1,EMAIL,m@example.com,Maria,52998224725\nb,0,EMAIL,m@example.com,Maria,52998224725\nc,99999999999999999999,EMAIL,m@example.com,Maria,52998224725\n",
			"validation_failed, items[0].amount out_of_range, items[1].amount out_of_range, items[2].amount out_of_range"},
		{"references twice", good + "a,100,EMAIL,m@example.com,Maria,52998224725\n", "validation_failed, items[1].referenceId not_allowed"},
		{"an unknown column", strings.Replace(good, "referenceId", "reference", 1), "unknown_field, reference unknown_field, items[0].referenceId required"},
		{"a duplicate column", strings.Replace(good, "amount", "referenceId", 1), "duplicate_field, referenceId not_allowed"},
		{"empty", "", "malformed_csv"},
		{"a row that is too short", good + "b,100\n", "malformed_csv"},
		{"a quote that is not closed", good + `"b,100`, "malformed_csv"},
		{"a quote inside a cell", good + "b,100,EMAIL,m@ex\"ample.com,Maria,52998224725\n", "malformed_csv"},
		{"invalid UTF-8", strings.Replace(good, "Maria", "Jo\xe3o", 1), "malformed_csv"},
		{"many columns", strings.Repeat("a,", 200) + "b\n", "malformed_csv"},
		{"many cells", good + strings.Repeat(",", cellsMax), "malformed_csv"},
		{"many empty lines", good + strings.Repeat("\n", cellsMax), "malformed_csv"},
	} {
		r, invalid := testDecoder.PayoutBatchCSV(Some("b"), false, []byte(row.body))
		if got := described(invalid); got != row.want {
			t.Errorf("%s: %s, want %s (%v)", row.name, got, row.want, invalid)
		}
		if row.want == "" && (len(r.Items) != 1 || r.Items[0].Amount.V != 100 || r.Items[0].ReferenceID.V != "a") {
			t.Errorf("%s: %+v", row.name, r.Items)
		}
	}
	if _, invalid := testDecoder.PayoutBatchCSV(Field[string]{}, false, []byte(good)); described(invalid) != "validation_failed, referenceId required" {
		t.Errorf("without a reference: %s", described(invalid))
	}
}

// A file with other separators, or without a header, is explained without a word of it.
func TestPayoutBatchCSVSeparators(t *testing.T) {
	t.Parallel()
	const row = `a,100,EMAIL,m@example.com,"Maria ""Silva""",52998224725` + "\n"
	for body, want := range map[string]string{
		"sep=;\r\n" + csvHeader + row:                 "The first line must be a header with the names of the fields.",
		strings.ReplaceAll(csvHeader+row, "\n", "\r"): "Lines must end with CRLF or LF, not with CR alone.",
		row + row: "The first line must be a header with the names of the fields.",
	} {
		r, invalid := testDecoder.PayoutBatchCSV(Some("b"), false, []byte(body))
		if described(invalid) != "malformed_csv" || invalid.Detail != want || len(r.Items) != 0 {
			t.Errorf("%q: %s %v, %d items", body, described(invalid), invalid, len(r.Items))
		}
	}
	for _, body := range []string{strings.ReplaceAll(csvHeader+row, ",", ";"), "\xef\xbb\xbf" + strings.ReplaceAll(csvHeader+row, ",", "\t"),
		strings.ReplaceAll(csvHeader+row, "\n", ",,\n") + ",,,,,,,\n,,,,,,,\n", csvHeader + row, "\xef\xbb\xbf" + strings.ReplaceAll(csvHeader+row, "\n", "\r\n"), csvHeader + strings.Replace(row, "Maria", "Ma;ria", 1)} {
		if r, invalid := testDecoder.PayoutBatchCSV(Some("b"), false, []byte(body)); invalid != nil || len(r.Items) != 1 {
			t.Errorf("%q: %v", body, invalid)
		}
	}
}

// JSON and CSV of the same items are the same request; any other item, order or reference is
// a different one.
func TestPayoutBatchFingerprint(t *testing.T) {
	t.Parallel()
	of := func(body string) Fingerprint {
		r, invalid := testDecoder.PayoutBatch([]byte(body))
		if invalid != nil {
			t.Fatal(invalid)
		}
		return r.Fingerprint
	}
	a, b := strings.Replace(item("a"), `"amount":100`, `"webhookUrl":null,"amount":100`, 1), item("b")
	first := of(batch(a, b))
	header := "amount,pixKey,pixKeyType,beneficiaryName,beneficiaryDocument,referenceId\n"
	r, invalid := testDecoder.PayoutBatchCSV(Some("b"), false, []byte(header+csvOf(t, a)+csvOf(t, b)))
	if invalid != nil || len(first.Differing(r.Fingerprint)) > 0 {
		t.Errorf("CSV differs in %v, %v", first.Differing(r.Fingerprint), invalid)
	}
	for body, want := range map[string]string{
		batch(item("a"), b): "", " " + batch(a, b): "", batch(b, a): "items", batch(a): "items", batch(a, b, item("c")): "items",
		batch(a, strings.Replace(b, "100", "101", 1)): "items", strings.Replace(batch(a, b), `"b"`, `"c"`, 1): "referenceId",
	} {
		if got := strings.Join(first.Differing(of(body)), " "); got != want {
			t.Errorf("%s differs in %q, want %q", body, got, want)
		}
	}
}

// csvOf is the row of an item.
func csvOf(t *testing.T, body string) string {
	t.Helper()
	q, invalid := testDecoder.Payout([]byte(body))
	if invalid != nil {
		t.Fatal(invalid)
	}
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	if err := w.Write([]string{fmt.Sprint(q.Amount.V), q.PIXKey.V, q.PIXKeyType.V, q.BeneficiaryName.V, q.BeneficiaryDocument.V, q.ReferenceID.V}); err != nil {
		t.Fatal(err)
	}
	w.Flush()
	return out.String()
}

// FuzzPayoutBatchCSV checks that a body is accepted with rows that each are a valid payout, or
// refused as a client error.
func FuzzPayoutBatchCSV(f *testing.F) {
	for _, body := range []string{
		"", csvHeader, csvHeader + "a,100,EMAIL,m@example.com,Maria,52998224725\n", "\xef\xbb\xbf" + csvHeader, "a,a\n", `"`, "a\"b\n", "\r\r\n,", strings.Repeat(",", 99),
		csvHeader + "a,100,EMAIL,m@example.com,\"Ma\r\nria\",52998224725\n", csvHeader + "a,1e2,EMAIL,m@example.com,\x00,52998224725", "amount\n-0\n", "amount\n9223372036854775808\n",
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		r, invalid := testDecoder.PayoutBatchCSV(Some("b"), false, body)
		checkBatch(t, r, invalid)
	})
}

// FuzzPayoutBatch is FuzzPayoutBatchCSV for JSON.
func FuzzPayoutBatch(f *testing.F) {
	for _, body := range hostileBodies(minimalPayout) {
		f.Add([]byte(body))
		f.Add([]byte(batch(body)))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		r, invalid := testDecoder.PayoutBatch(body)
		checkBatch(t, r, invalid)
		if alone, bad := testDecoder.Payout(body); bad == nil && !bytes.HasPrefix(body, byteOrderMark) { // an item means what it means alone
			r, invalid := testDecoder.PayoutBatch([]byte(batch(string(body))))
			if invalid != nil || !bytes.Equal(r.Items[0].Fingerprint, alone.Fingerprint) || r.Items[0].NormalKey != alone.NormalKey {
				t.Errorf("alone it is accepted, in a batch: %v", invalid)
			}
		}
	})
}

func checkBatch(t *testing.T, r *PayoutBatchRequest, invalid *problem.Error) {
	t.Helper()
	if invalid != nil {
		if status := invalid.Kind.Status(); status != 400 && status != 422 || len(invalid.Fields) > errorsMax || status == 422 && len(invalid.Fields) == 0 {
			t.Fatalf("refused with %s", described(invalid))
		}
		return
	}
	known := map[string]bool{}
	for _, item := range r.Items {
		var errs Errors
		item.Check(testDecoder.Rules, &errs)
		if len(errs.List()) > 0 || known[item.ReferenceID.V] || len(item.Fingerprint) == 0 {
			t.Fatalf("accepted %+v", item)
		}
		known[item.ReferenceID.V] = true
	}
	if len(r.Items) == 0 || len(r.Items) > BatchItemsMax {
		t.Fatalf("accepted %d items", len(r.Items))
	}
}

func TestPayoutBatchView(t *testing.T) {
	t.Parallel()
	b := payment.PayoutBatch{ReferenceID: "b", Count: 3, Amount: 300, Version: 1, Counts: map[payment.PayoutStatus]int64{payment.PayoutPending: 2, payment.PayoutCompleted: 1}}
	got, err := PayoutBatch(&b)
	want := `{"id":"00000000-0000-0000-0000-000000000000","referenceId":"b","status":"PROCESSING","count":3,"amount":300,"currency":"BRL",` +
		`"counts":{"PENDING":2,"COMPLETED":1},"version":1,"createdAt":"","updatedAt":""}`
	if err != nil || string(got) != want {
		t.Errorf("%s, %v", got, err)
	}
}

// Amounts in reais are read as spreadsheets of Brazil and others write them; errors name the line of the file.
func TestPayoutBatchCSVAmounts(t *testing.T) {
	t.Parallel()
	const cents, reais = "must be an integer of cents: 1000 is R$ 10,00; or send ?amounts=decimal", "must be an amount in reais, such as 1.234,56 or 1234.56"
	for _, row := range []struct {
		cell    string
		decimal bool
		want    int64 // 0: an error
		detail  string
	}{
		{"1234", false, 1234, ""},
		{"10,00", false, 0, cents},
		{"10.00", false, 0, cents},
		{"1234,56", true, 1234_56, ""},
		{"1.234,56", true, 1234_56, ""},
		{"12.345.678,9", true, 12345678_90, ""},
		{"1234.56", true, 1234_56, ""},
		{"10", true, 10_00, ""},
		{"0,05", true, 5, ""},
		{"0,00", true, 0, "must be between"},
		{"1.234", true, 0, reais},
		{"1,234.56", true, 0, reais},
		{"12.34,56", true, 0, reais},
		{"10,000", true, 0, reais},
		{"R$ 10,00", true, 0, reais},
		{"-10,00", true, 0, reais},
		{"99999999999999999999,00", true, 0, "must fit in 64 bits"},
	} {
		body := strings.ReplaceAll(csvHeader, ",", ";") + "\na;" + row.cell + ";EMAIL;m@example.com;Maria;52998224725\n"
		r, invalid := testDecoder.PayoutBatchCSV(Some("b"), row.decimal, []byte(body))
		if row.want != 0 && (invalid != nil || r.Items[0].Amount.V != row.want) {
			t.Errorf("%s: %v", row.cell, invalid)
		}
		if row.want != 0 {
			continue
		}
		named := r.NameLines(invalid)
		if invalid == nil || !strings.Contains(invalid.Fields[0].Detail, row.detail) || !strings.HasSuffix(named.Fields[0].Detail, " (line 3 of the file)") {
			t.Errorf("%s: %+v", row.cell, named.Fields)
		}
	}
}
