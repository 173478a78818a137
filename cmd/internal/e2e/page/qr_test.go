//go:build e2e

package page

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"agentsite/cmd/internal/e2e/harness"
)

// readQR reads the QR code in what a terminal shows: letters are light.
func readQR(t *testing.T, shown string) string {
	t.Helper()
	var rows []string
	for row := range strings.Lines(shown) {
		if strings.ContainsAny(row, "█▀▄") {
			rows = append(rows, strings.TrimSuffix(row, "\n"))
		}
	}
	const size = 4 // of a square
	picture := image.NewGray(image.Rect(0, 0, 100*size, 100*size))
	for y, row := range rows {
		for x, r := range []rune(row) {
			for half, letters := range []string{"█▀", "█▄"} {
				if strings.ContainsRune(letters, r) {
					for i := range size * size {
						picture.SetGray(x*size+i%size, (2*y+half)*size+i/size, color.Gray{255})
					}
				}
			}
		}
	}
	var screen bytes.Buffer
	if err := png.Encode(&screen, picture); err != nil {
		t.Fatal(err)
	}
	return scanned(t, screen.Bytes())
}

// scanned reads the QR code in a picture, a PNG, as another program sees it.
func scanned(t *testing.T, picture []byte) string {
	t.Helper()
	program, _ := exec.LookPath("zbarimg")
	harness.Need(t, "zbarimg", program)
	file := filepath.Join(t.TempDir(), "code.png")
	if err := os.WriteFile(file, picture, 0o600); err != nil {
		t.Fatal(err)
	}
	said, err := exec.Command(program, "-q", "--raw", file).Output()
	if err != nil {
		t.Fatal("no code is found:", err)
	}
	return strings.TrimSpace(string(said))
}

// TestConsoleCode: the code on a board's screen has how to claim the site, and once somebody owns it, the
// address of its page and no more.
func TestConsoleCode(t *testing.T) {
	t.Parallel()
	ann := harness.NewPerson(t)
	site, claim := harness.StartUnclaimed(t, harness.TempDir(t))
	console := func() string {
		t.Helper()
		shown, err := site.CLI(t, "console")
		if err != nil {
			t.Fatal(err)
		}
		return shown
	}
	if got := readQR(t, console()); got != claim.String() {
		t.Errorf("before the claim: %s, not %s", got, claim)
	}
	ann.MustCLI(t, "claim", claim.String())
	shown, page := console(), site.HTTPS(t).URL+"/"
	got := readQR(t, shown)
	if got != page || !strings.Contains(shown, page) || strings.Contains(shown, claim.Secret.Text()) {
		t.Errorf("after the claim: %s, not %s\n%s", got, page, shown)
	}
}
