package wire

import "testing"

func TestPage(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		entries [][]byte
		next    string
		want    string
	}{
		{nil, "", `{"data":[],"nextCursor":null}`},
		{[][]byte{[]byte(`{"a":1}`)}, "", `{"data":[{"a":1}],"nextCursor":null}`},
		{[][]byte{[]byte(`{}`), []byte(`[]`)}, "AQ-_", `{"data":[{},[]],"nextCursor":"AQ-_"}`},
	} {
		if got := string(Page(tt.entries, tt.next)); got != tt.want {
			t.Errorf("page is %s, want %s", got, tt.want)
		}
	}
}
