package peer

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"agentsite/node/state"
)

// TestTokenGoesToTheSiteOnly: another program on the site's port while the site is down is not sent
// its token.
func TestTokenGoesToTheSiteOnly(t *testing.T) {
	said := make(chan string, 10)
	squatter := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { said <- r.Header.Get("Authorization") }))
	defer squatter.Close()
	f := state.Folder(t.TempDir())
	if err := os.WriteFile(f.Path(state.TokenFile), []byte(strings.Repeat("0", 64)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, target := range []Target{{URL: squatter.URL}, {URL: strings.Replace(squatter.URL, "127.0.0.1", "localhost", 1)}} {
		target.Folder = f
		c, err := Dial(target)
		if err == nil {
			c.Tools(t.Context())
			t.Error("it is dialled")
		}
		select {
		case token := <-said:
			t.Errorf("%s was sent %q", target.URL, token)
		default:
		}
	}
	c, err := Dial(Target{Folder: f, URL: squatter.URL, TokenFile: f.Path(state.TokenFile)}) // at the user's word
	if err != nil {
		t.Fatal(err)
	}
	c.Tools(t.Context())
	if len(said) == 0 {
		t.Error("the squatter of this test hears nothing")
	}
}

// TestNoGroupOfRoots: nobody is told to join the superuser's group to speak to a site.
func TestNoGroupOfRoots(t *testing.T) {
	if group := state.Group("/"); group != "root" && os.Getenv("CI") == "" {
		t.Skipf("SKIPPED: / belongs to the group %q here", group)
	}
	if says := notRunning(state.Folder("/"), fs.ErrPermission).Error(); strings.Contains(says, "usermod") {
		t.Error(says)
	}
}
