package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// newRoot returns the whole command line, which prints nothing.
func newRoot() *cobra.Command {
	a := &app{in: strings.NewReader(""), out: &output{Writer: io.Discard}, errs: io.Discard}
	root := a.root()
	a.addCommands(root)
	root.InitDefaultHelpCmd()
	return root
}

// shellWords splits a line as a shell does, up to a pipe, a redirection or a comment, and without what stands before
// the program: sudo, a variable, a substitution.
func shellWords(t *testing.T, line string) (all []string) {
	t.Helper()
	word, quote, has := "", rune(0), false
	end := func() {
		if has {
			all, word, has = append(all, word), "", false
		}
	}
scan:
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word += string(r)
		case r == '\'' || r == '"':
			quote, has = r, true
		case r == ' ':
			end()
		case strings.ContainsRune("|>#;)", r), r == '<' && !strings.HasPrefix(line, "source <("):
			break scan
		default:
			word, has = word+string(r), true
		}
	}
	if end(); quote != 0 {
		t.Errorf("an open quote: %s", line)
	}
	for i, w := range all {
		if strings.TrimPrefix(w, "<(") == "agentsite" {
			return all[i+1:]
		}
	}
	return nil
}

// TestHelpExamples: the help of each command has an example of it, and the words of each example are a command line
// that the command takes.
func TestHelpExamples(t *testing.T) {
	used := make(map[string]bool)
	commands(func(c *cobra.Command) {
		if c.Hidden {
			return
		}
		name := strings.TrimPrefix(strings.TrimPrefix(c.CommandPath(), "agentsite"), " ")
		used[name] = true
		own := false
		for line := range strings.Lines(c.Example) {
			words := shellWords(t, strings.TrimSpace(line))
			if len(words) == 0 {
				continue
			}
			found := parses(t, words)
			own = own || found == c.CommandPath() || c.HasSubCommands() && strings.HasPrefix(found, c.CommandPath())
		}
		if !own {
			t.Errorf("%q has no example of its own", name)
		}
	})
	for name := range examples {
		if !used[name] {
			t.Errorf("there is no command %q", name)
		}
	}
}

// TestMisspeltCommands: a misspelt command is refused with the nearest one, also by help. Where an argument may stand in
// its place, it is one.
func TestMisspeltCommands(t *testing.T) {
	tried := 0
	commands(func(c *cobra.Command) {
		parent := c.Parent()
		if parent == nil || c.Hidden || c.Name() == "help" || parent.Name() == "completion" ||
			strings.Contains(parent.Use, " ") {
			return
		}
		tried++
		path := strings.Fields(c.CommandPath())[1:]
		path[len(path)-1] += "x"
		for _, args := range [][]string{path, append([]string{"help"}, path...)} {
			var errs bytes.Buffer
			code := (&app{out: &output{Writer: io.Discard}, errs: &errs}).execute(t.Context(), args)
			said := errs.String()
			if code != exitUsage || !strings.Contains(said, "did you mean") || !strings.Contains(said, c.Name()) {
				t.Errorf("agentsite %s: exit %d, %s", strings.Join(args, " "), code, errs.String())
			}
		}
	})
	if tried < 50 {
		t.Errorf("%d commands", tried)
	}
}

// TestNegativeNumber: the advice for a negative number has the number.
func TestNegativeNumber(t *testing.T) {
	var errs bytes.Buffer
	args := []string{"sim", "set", "climate/temperature", "-12.5"}
	code := (&app{out: &output{Writer: io.Discard}, errs: &errs}).execute(t.Context(), args)
	if code != exitUsage || !strings.Contains(errs.String(), "-- -12.5") {
		t.Errorf("exit %d, %s", code, errs.String())
	}
}

// parses checks that words are a command line, and returns the path of its command.
func parses(t *testing.T, words []string) string {
	t.Helper()
	c, rest, err := newRoot().Find(words)
	if err == nil {
		err = c.ParseFlags(rest)
	}
	if err == nil {
		err = c.ValidateArgs(c.Flags().Args())
	}
	if err != nil {
		t.Errorf("agentsite %s: %v", strings.Join(words, " "), err)
	}
	return c.CommandPath()
}

// noCommands are words behind the program's name that make no command of it.
var noCommands = strings.Fields(`adds bundle channel has installs is key listened occurrence on only or owner's page passkey
	runs seal service shows
	starts task wrote`)

// suggested finds what a text calls a command of this program, up to the end of its clause.
var suggested = regexp.MustCompile(`\bagentsite ((?:--(?:site|peer|data) \S+ )?[a-z][^"\x60;:,()<\n\x00]*)`)

// TestSuggestions: the commands and flags that errors, hints and help name exist.
func TestSuggestions(t *testing.T) {
	n := 0
	for _, folder := range []string{"agents", "cmd", "device", "discovery", "node", "transport"} {
		err := filepath.WalkDir(filepath.Join("../..", folder), func(path string, d fs.DirEntry, err error) error {
			isTest := strings.HasSuffix(path, "_test.go") || strings.Contains(path, "/e2e/")
			if err != nil || !strings.HasSuffix(path, ".go") || isTest {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(node ast.Node) bool {
				lit, ok := node.(*ast.BasicLit)
				if !ok || lit.Kind != token.STRING {
					return true
				}
				text, _ := strconv.Unquote(lit.Value)
				for _, m := range suggested.FindAllStringSubmatch(text, -1) {
					n++
					checkSuggestion(t, path, m[1])
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if n < 200 {
		t.Errorf("only %d suggestions were found", n)
	}
}

// checkSuggestion checks the command that a text begins with, and the flags up to its end.
func checkSuggestion(t *testing.T, path, text string) {
	t.Helper()
	words := strings.Fields(text)
	for i := range words {
		words[i] = strings.TrimRight(words[i], ".'")
	}
	if slices.Contains(noCommands, words[0]) {
		return
	}
	root := newRoot()
	c, _, err := root.Find(words)
	if err != nil || c == root {
		t.Errorf("%s: there is no command of this name: agentsite %s", path, text)
		return
	}
	c.InitDefaultHelpFlag()
	for _, word := range words {
		name, isFlag := strings.CutPrefix(word, "--")
		name, _, _ = strings.Cut(name, "=")
		if isFlag && name != "" && c.Flag(name) == nil && c.InheritedFlags().Lookup(name) == nil {
			t.Errorf("%s: %s has no flag --%s: agentsite %s", path, c.CommandPath(), name, text)
		}
	}
}
