package qr

import (
	"strings"
	"testing"

	"rsc.io/qr"
)

// TestDraw: each character has two squares of the code, the light ones as letters, and all rows are as wide
// as the code with its margins. Rows has the same squares without them. A text that no code holds has none.
func TestDraw(t *testing.T) {
	for _, text := range []string{"", "https://agentsite-k5qjb3xz.local:8474/", strings.Repeat("ä", 1400)} {
		drawn := Draw(text)
		code, err := qr.Encode(text, qr.L)
		if err != nil {
			t.Fatal(err)
		}
		rows := strings.Split(strings.TrimSuffix(drawn, "\n"), "\n")
		if len(rows) != (code.Size+2*margin+1)/2 {
			t.Errorf("%d rows for %d squares", len(rows), code.Size)
		}
		plain := Rows(text)
		if len(plain) != code.Size {
			t.Fatalf("%d plain rows for %d squares", len(plain), code.Size)
		}
		for y, row := range plain {
			for x, r := range row {
				if len(row) != code.Size || r == '1' != code.Black(x, y) || r == '0' == code.Black(x, y) {
					t.Fatalf("%q at %d, %d", r, x, y)
				}
			}
		}
		for i, row := range rows {
			squares := []rune(row)
			if len(squares) != code.Size+2*margin {
				t.Fatalf("row %d has %d squares", i, len(squares))
			}
			for j, r := range squares {
				x, y := j-margin, 2*i-margin
				above, below := strings.ContainsRune("█▀", r), strings.ContainsRune("█▄", r)
				if above == code.Black(x, y) || below == code.Black(x, y+1) {
					t.Fatalf("%q at %d, %d", r, x, y)
				}
			}
		}
		color := Color(drawn)
		if strings.Count(color, "\x1b[") != 2*len(rows) || strings.Count(color, "\n") != len(rows) {
			t.Errorf("the colors of %d rows are %q", len(rows), color)
		}
	}
	long := strings.Repeat("x", 3000)
	if drawn := Draw(long); drawn != "" || Color(drawn) != "" || Rows(long) != nil {
		t.Errorf("a text that is too long: %q", drawn)
	}
}
