package main

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"agentsite/cmd/internal/site"
	"agentsite/node/access"
	"agentsite/node/identity"
	"agentsite/node/state"
)

// TestClaimFitsScreen: the instructions for the claim fit a terminal of 80 × 24, with the QR code
// and, at the end, the line to copy.
func TestClaimFitsScreen(t *testing.T) {
	for range 100 {
		i := access.Invitation{Site: identity.New().ID(), Secret: access.ClaimSecret{1}, Addresses: []string{"192.168.100.200:18474"}}
		var out bytes.Buffer
		printBanner(&out, true, state.ServiceFolder, site.Started{Name: "greenhouse", File: "agentsite.yaml", URL: "http://127.0.0.1:8473", Page: func() string { return "" }, Claim: &i})
		text := strings.NewReplacer("\x1b[37;40;1m", "", "\x1b[0m", "").Replace(out.String())
		begin := strings.IndexAny(text, "█▀▄")
		rows := 1 // of the cursor
		for line := range strings.Lines(text[begin:]) {
			letters := utf8.RuneCountInString(strings.TrimRight(line, "\n"))
			if strings.ContainsAny(line, "█▀▄") && letters > 80 {
				t.Fatalf("the picture has %d columns", letters)
			}
			rows += max(1, (letters+79)/80)
		}
		if rows > 24 || !strings.HasSuffix(text, "\n  agentsite claim "+i.String()+"\n") {
			t.Fatalf("%d rows\n%s", rows, text[begin:])
		}
	}
}
