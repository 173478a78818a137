package acts

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"agentsite/agents"
	"agentsite/agents/principal"
	"agentsite/device"
	"agentsite/node"
	"agentsite/node/config"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// noted is a node.Journal of what owners did.
type noted struct {
	node.Journal
	outcomes []string
}

func (n *noted) Add(_ node.Asked, o node.Outcome) { n.outcomes = append(n.outcomes, o.Fault) }

// TestConfigure: a configuration is replaced as a whole, by an owner who saw the one before, and rolled back
// where the site does not take it.
func TestConfigure(t *testing.T) {
	owner := agents.Principal{Kind: principal.Local, ID: "local", Owner: true}
	mistaken := &config.Error{File: "x", Line: 2, Column: 1, Err: errors.New("wrong")}
	for name, tt := range map[string]struct {
		check, reload error
		unseen        bool
		kind          device.FaultKind
		replaced      bool
	}{
		"taken":              {replaced: true},
		"of another text":    {unseen: true, kind: device.Invalid},
		"mistaken":           {check: mistaken, kind: device.Invalid},
		"mistaken at reload": {reload: mistaken, kind: device.Invalid},
		"needs a restart":    {reload: device.Faultf(device.Invalid, "restart"), kind: device.Invalid},
		"refused":            {reload: device.Faultf(device.Unavailable, "the disk"), kind: device.Unavailable},
		"a part is missing":  {reload: device.Faultf(device.Offline, "it holds, but"), kind: device.Offline, replaced: true},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "site.yaml")
			link := filepath.Join(t.TempDir(), "link.yaml")
			if err := errors.Join(os.WriteFile(file, []byte("old"), 0o640), os.Symlink(file, link)); err != nil {
				t.Fatal(err)
			}
			j := &noted{}
			var read []string
			s := &Site{
				Node: node.New(node.NewHub(nil, nil, agents.PointURI), "secret", j), Configuration: link,
				Check: func([]byte) ([]error, error) { return nil, tt.check },
				Reload: func(ctx context.Context) error {
					text, err := os.ReadFile(file)
					read = append(read, string(text))
					return errors.Join(tt.reload, err, ctx.Err())
				},
			}
			was, err := s.configuration()
			if err != nil || was.Text != "old" {
				t.Fatal(was, err)
			}
			if tt.unseen {
				was.Digest = digestOf([]byte("older"))
			}
			ctx, leave := context.WithCancel(t.Context())
			leave() // the caller does not wait
			_, err = s.configure(ctx, owner, NewConfiguration{Text: "new", Digest: was.Digest})
			if (err == nil) != (tt.kind == "") || err != nil && device.AsFault(err).Kind != tt.kind {
				t.Errorf("%v, want %q", err, tt.kind)
			}
			want := "old"
			if tt.replaced {
				want = "new"
			}
			text, err := os.ReadFile(file)
			info, statErr := os.Stat(file)
			if err != nil || statErr != nil || string(text) != want || info.Mode().Perm() != 0o640 {
				t.Errorf("%s %v %v", text, info, err)
			}
			if _, err := os.Lstat(link); err != nil {
				t.Error(err)
			}
			touched := !tt.unseen && tt.check == nil
			if touched != slices.Equal(read, []string{"new"}) || touched != (len(j.outcomes) == 1) {
				t.Errorf("read %q, noted %q", read, j.outcomes)
			}
			if before, err := os.ReadFile(file + ".before"); touched && (err != nil || string(before) != "old") {
				t.Errorf("%s %v", before, err)
			}
		})
	}
}

// TestMistakes: each mistake that an error joins comes with its place.
func TestMistakes(t *testing.T) {
	all := mistakesOf(errors.Join(
		errors.Join(&config.Error{Line: 2, Column: 3, Err: errors.New("a")}, errors.New("b")), &config.Error{Line: 4, Column: 1, Err: errors.New("c")}))
	if want := []Mistake{{2, 3, "a"}, {0, 0, "b"}, {4, 1, "c"}}; !slices.Equal(all, want) {
		t.Errorf("%+v", all)
	}
	if none := mistakesOf(nil); none == nil || len(none) > 0 {
		t.Errorf("%+v", none)
	}
}
