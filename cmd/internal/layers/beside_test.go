// The detector makes a reading of all sources take minutes, and there is one goroutine.

//go:build !race

package layers

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// TestBeside: what runs in the background of a script of .ci is waited for, and one that fails at
// once fails the whole.
func TestBeside(t *testing.T) {
	for _, file := range []string{"run", "e2e"} {
		text, err := os.ReadFile("../../../.ci/" + file)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range regexp.MustCompile(`(?m)[^&>]&( .*)?$`).FindAllString(string(text), -1) {
			if !strings.Contains(line, "& running+=($!)") {
				t.Errorf(".ci/%s does not wait for what is begun by %q", file, line)
			}
		}
	}
	for first, fails := range map[string]bool{"true": false, "false": true} {
		script := exec.Command("bash", "-c", `. .ci/lib
			{ `+first+`; } & running+=($!)
			while kill -0 $! 2>/dev/null; do :; done
			{ true; } & running+=($!)
			all`)
		script.Dir = "../../.."
		said, err := script.CombinedOutput()
		if _, failed := err.(*exec.ExitError); err != nil && !failed || failed != fails || len(said) > 0 {
			t.Errorf("beside %s: %v, %s", first, err, said)
		}
	}
}
