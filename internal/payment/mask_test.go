package payment_test

import (
	"testing"

	"github.com/porteira/porteira/internal/payment"
)

func TestMask(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ got, want string }{
		{payment.MaskName("Maria Aparecida da Silva"), "M••• A••• d••• S•••"},
		{payment.MaskName(""), ""},
		{payment.MaskDocument("52998224725"), "•••.982.247-••"},
		{payment.MaskDocument("12ABC34501DE35"), "12•••35"},
		{payment.MaskEmail("joão@example.com"), "j•••@example.com"},
		{payment.MaskEmail("@example.com"), "•••@example.com"},
		{payment.MaskEmail("no address"), "no•••ss"},
		{payment.MaskKey("CPF", "52998224725"), "•••.982.247-••"},
		{payment.MaskKey("PHONE", "+5511987654321"), "+5•••21"},
		{payment.MaskKey("", "52998224725"), "52•••25"},
		{payment.MaskKey("EVP", "123e4567-e89b-12d3-a456-426655440000"), "12•••00"},
		{payment.MaskText("short"), "•••"},
		{payment.MaskText(""), ""},
	} {
		if row.got != row.want {
			t.Errorf("%q, want %q", row.got, row.want)
		}
	}
}
