package layers

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// avoided is a word or phrase with a usual term that replaces it, and the files or folders
// where it may stay.
type avoided struct {
	pattern string // of regexp; (?i) is put before it
	instead string
	allowed []string
}

var avoidedWords = []avoided{
	{`openBook`, "openAccess", nil},
	{`by leave of`, "that depends on", nil},
	{`over by itself`, "ends by itself", nil},
	{`silentFor`, "setUserTimeout", nil},
	{`asked next`, "the next call", nil},
	{`ha(s|ve) (nobody|everybody) `, "the actor and its verb", nil},
	{`says much`, "when the table is full", nil},
	{`is who `, "the actor and its verb", nil},
	{`number that is none`, "NaN or Inf", nil},
	{`nobody in particular`, "not authenticated", nil},
	{`\b(?-i:LEAST|GREATEST)\b`, "MIN, MAX", nil},
	{`put a newer version of this program|goes again if`, "install; rolls back", nil},
	{`nobody's key`, "no owner yet", nil},
	{`picture for a telephone`, "QR code", nil},
	{`nobody but you has`, "no tokens or grants yet", nil},
	{`is not known; not before`, "the clock is not set", nil},
	{`not as good as they could be`, "an output may switch off late", nil},
	{`did not go well`, "failed", nil},
	{`who finds whom`, "a private group of sites and people who can find each other", nil},
	{`\blet go of\b`, "released, closed, removed", nil},
	{`crowd`, "connection limit, flood, many", nil},
	// QEMU and Wi-Fi routers call it so.
	{`guest`, "connection state", []string{"device/testbed", "device/host", "cmd/internal/e2e/board", "cmd/internal/e2e/harness/machine.go",
		"cmd/internal/e2e/install/card_test.go", "cmd/internal/e2e/install/image_test.go", "cmd/internal/layers/layers_test.go", "docs/architecture.md", "docs/cli.md", "docs/raspberry-pi.md"}},
	{`seated`, "hasSlot", nil},
	{`\bnews\b|newsroom|\bhousehold\b`, "announcement, change, event", nil},
	{`\bpresence\b`, "announcer", []string{"device/testbed"}}, // a 1-Wire part reports its presence
	{`whereabouts`, "endpoints", nil},
	{`\bwelcom`, "printBanner", nil},
	{`\bvouch`, "confirm, sign for", nil},
	{`reassure`, "feedWatchdog", nil},
	{`keepOwn`, "restrictUmask", nil},
	{`thrifty`, "limitMemory", nil},
	{`makeWay`, "takeOverGuard", nil},
	{`cards die`, "Back up and restore", nil},
	{`\berrand`, "request", nil},
	{`\bafar\b`, "remote", nil},
	{`\bpaced\b`, "rate-limited", nil},
	{`starts? the board again`, "reboot", nil},
	{`(?-i:\bObey\(|\bSees\(|\bStanding\()`, "SetAccess, CanSee, Version", nil},
	{`\btype (refusal|seat)\b`, "RequestError, an entry", nil},
	{`\bfunc (\([^)]*\) )?(refusal|rest|lost|written)\(`, "a verb and its object: errorResponse, writeSafe, markDisconnected, writeTestSegment", nil},
	{`\bdoor := node\.|the same door|the door ended`, "the node", nil},
}

// TestWords fails on words of a dialect where the field has a usual term.
func TestWords(t *testing.T) {
	const root = "../../.."
	var patterns []*regexp.Regexp
	for _, w := range avoidedWords {
		patterns = append(patterns, regexp.MustCompile("(?i)"+w.pattern))
	}
	files := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := filepath.ToSlash(strings.TrimPrefix(path, filepath.FromSlash(root+"/")))
		if d.IsDir() {
			if name == ".git" || name == ".cache" || name == "dist" || name == "deploy/replaced" {
				return filepath.SkipDir
			}
			return nil
		}
		if !slices.Contains([]string{".go", ".md", ".sh", ".txtar"}, filepath.Ext(name)) || name == "cmd/internal/layers/words_test.go" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files++
		for i, p := range patterns {
			w := avoidedWords[i]
			if slices.ContainsFunc(w.allowed, func(a string) bool { return name == a || strings.HasPrefix(name, a+"/") }) {
				continue
			}
			for _, at := range p.FindAllIndex(text, -1) {
				t.Errorf("%s:%d: %q: the usual term is: %s", name, 1+strings.Count(string(text[:at[0]]), "\n"), text[at[0]:at[1]], w.instead)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 500 {
		t.Errorf("only %d files were read", files)
	}
}
