//go:build e2e

package access

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httputil"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/node/access"
	"agentsite/node/identity"
	"agentsite/node/state"
	"agentsite/transport/mcp/client"
	ownerapi "agentsite/transport/owner"
	"agentsite/transport/web"

	"github.com/go-json-experiment/json"
)

// challenged requests a challenge to claim a site as the key of c.
func challenged(t testing.TB, c *client.Client) ([32]byte, error) {
	text, err := c.CallMethod(t.Context(), string(ownerapi.ChallengeMethod), nil)
	if err != nil {
		return [32]byte{}, err
	}
	var out struct {
		Challenge [32]byte `json:"challenge"`
	}
	return out.Challenge, json.Unmarshal(text, &out)
}

// proved sends a proof.
func proved(t testing.TB, c *client.Client, p access.Proof) error {
	_, err := c.CallMethod(t.Context(), string(ownerapi.ProveMethod), p)
	return err
}

// denied reports whether a site refused something, in these words.
func denied(err error, says string) bool {
	var r *client.RequestError
	return errors.As(err, &r) && r.Kind == "denied" && strings.Contains(r.Msg, says)
}

const (
	notTheSecret = "this is not the secret of this site, or it came too late"
	hasAnOwner   = "this site has an owner already"
)

// tap is the man in the middle who has every key, and so reads all that is said.
type tap struct {
	address  string
	withhold atomic.Bool                  // what proves something
	proof    atomic.Pointer[access.Proof] // the last one

	mu   sync.Mutex
	said bytes.Buffer
}

func tapped(t *testing.T, r *harness.Site, i access.Invitation, claimant identity.Key) *tap {
	text, err := os.ReadFile(filepath.Join(r.Folder, "key"))
	if err != nil {
		t.Fatal(err)
	}
	key, err := identity.ParsePEM(text)
	if err != nil {
		t.Fatal(err)
	}
	secured, err := web.ClientTLS(claimant, i.Site)
	if err != nil {
		t.Fatal(err)
	}
	p := &tap{}
	on := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = "https", i.Addresses[0] },
		Transport: &http.Transport{TLSClientConfig: secured},
		ModifyResponse: func(res *http.Response) error {
			text, err := httputil.DumpResponse(res, true)
			p.note(text)
			return err
		},
	}
	p.address = harness.ServeAs(t, key, func(w http.ResponseWriter, r *http.Request) {
		text, err := httputil.DumpRequest(r, true)
		if err != nil {
			t.Error(err)
		}
		p.note(text)
		if r.Header.Get("Mcp-Method") == string(ownerapi.ProveMethod) {
			_, body, _ := bytes.Cut(text, []byte("\r\n\r\n"))
			var message struct {
				Params access.Proof `json:"params"`
			}
			if err := json.Unmarshal(body, &message); err != nil {
				t.Error(err)
			}
			p.proof.Store(&message.Params)
			if p.withhold.Load() {
				http.Error(w, "lost", http.StatusBadGateway)
				return
			}
		}
		on.ServeHTTP(w, r)
	})
	return p
}

func (p *tap) note(text []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.said.Write(text)
}

// TestClaimOnce: an attacker reads the messages of a claim in the clear. The secret is not among
// it, and nothing of it counts a second time.
func TestClaimOnce(t *testing.T) {
	data, ann, eve := harness.TempDir(t), harness.NewPerson(t), harness.NewPerson(t)
	r, i := harness.StartUnclaimed(t, data)
	p := tapped(t, r, i, ann.Key(t))
	through := i
	through.Addresses = []string{p.address}

	// A proof that never came, after the site has started again.
	p.withhold.Store(true)
	if _, err := ann.CLI(t, "claim", through.String()); err == nil {
		t.Fatal("it was claimed without a proof")
	}
	lost := p.proof.Load()
	if lost == nil || lost.Claimant != ann.Key(t).ID() {
		t.Fatal("no proof was overheard")
	}
	r.Stop(t)
	r, again := harness.StartUnclaimed(t, data)
	if again.Secret != i.Secret || again.Site != i.Site {
		t.Error("an address that was copied counts no more after a start")
	}
	i = again
	if err := proved(t, harness.DialAs(t, ann.Key(t), i), *lost); !denied(err, notTheSecret) {
		t.Error("a proof for another challenge:", err)
	}
	if len(r.Owners(t)) != 0 {
		t.Fatal("it is owned")
	}

	p = tapped(t, r, i, ann.Key(t))
	through.Addresses = []string{p.address}
	if out := ann.MustCLI(t, "claim", through.String()); !strings.Contains(out, "the site shed:") {
		t.Error(out)
	}
	right, late := *p.proof.Load(), harness.DialAs(t, eve.Key(t), i)
	if _, err := challenged(t, late); !denied(err, hasAnOwner) {
		t.Error("another challenge:", err)
	}
	if err := proved(t, late, access.Prove(eve.Key(t), i.Site, i.Secret, right.Challenge)); !denied(err, hasAnOwner) {
		t.Error("another who knows the secret:", err)
	}
	if err := proved(t, late, right); !denied(err, "the proof of another key") {
		t.Error("the same proof from another:", err)
	}
	if err := proved(t, harness.DialAs(t, ann.Key(t), i), right); !denied(err, hasAnOwner) {
		t.Error("the same proof once more:", err)
	}
	if got := r.Owners(t); !slices.Equal(got, []string{ann.Key(t).ID().String()}) {
		t.Error("it is owned by", got)
	}

	all := p.said.Bytes()
	if !bytes.Contains(all, []byte(ownerapi.ProveMethod)) || !bytes.Contains(all, []byte(`"answer"`)) {
		t.Fatalf("nothing was overheard: %s", all)
	}
	for _, form := range []string{string(i.Secret[:]), i.Secret.Text(), hex.EncodeToString(i.Secret[:]), base64.StdEncoding.EncodeToString(i.Secret[:])[:22]} {
		if bytes.Contains(bytes.ToLower(all), bytes.ToLower([]byte(form))) {
			t.Errorf("the secret was said, as %q", form)
		}
	}
	if _, err := os.Stat(filepath.Join(data, state.ClaimFile)); !errors.Is(err, os.ErrNotExist) {
		t.Error("the file with the secret is there still:", err)
	}
	kept, err := os.ReadFile(filepath.Join(data, "access"))
	if err != nil || bytes.Contains(kept, i.Secret[:]) {
		t.Error("the secret is kept still:", err)
	}
}

// TestClaimRefused: a claimant without the secret, or a man in the middle, gets nothing.
func TestClaimRefused(t *testing.T) {
	ann, eve := harness.NewPerson(t), harness.NewPerson(t)
	r, i := harness.StartUnclaimed(t, harness.TempDir(t))
	wrong := i
	wrong.Secret[15] ^= 1
	if out, err := eve.CLI(t, "claim", wrong.String()); err == nil || !strings.Contains(err.Error(), notTheSecret) {
		t.Error("a wrong secret:", out, err)
	}

	// Another person replays the right one's proof as her own.
	challenge, err := challenged(t, harness.DialAs(t, ann.Key(t), i))
	if err != nil {
		t.Fatal(err)
	}
	right := access.Prove(ann.Key(t), i.Site, i.Secret, challenge)
	middle := harness.DialAs(t, eve.Key(t), i)
	own, err := challenged(t, middle)
	if err != nil {
		t.Fatal(err)
	}
	if err := proved(t, middle, right); !denied(err, "the proof of another key") {
		t.Error("passed on:", err)
	}
	renamed := right
	renamed.Claimant = eve.Key(t).ID()
	asked := renamed
	asked.Challenge = own
	signed := asked
	signed.Signature = access.Prove(eve.Key(t), i.Site, wrong.Secret, own).Signature
	for name, p := range map[string]access.Proof{"renamed": renamed, "for her own challenge": asked, "signed by her": signed} {
		if err := proved(t, middle, p); !denied(err, notTheSecret) {
			t.Errorf("passed on, %s: %v", name, err)
		}
	}

	// A server in the site's place is sent nothing.
	var heard atomic.Int64
	listen := func(http.ResponseWriter, *http.Request) { heard.Add(1) }
	for name, at := range map[string]string{
		"a key of her own":       harness.ServeAs(t, eve.Key(t), listen),
		"the site's certificate": harness.ServeTLS(t, &tls.Config{Certificates: []tls.Certificate{borrowed(t, i, eve.Key(t))}}, listen),
		"the site's authority":   harness.ServeTLS(t, &tls.Config{Certificates: []tls.Certificate{underAuthority(t, i, eve.Key(t))}}, listen),
	} {
		false := i
		false.Addresses = []string{at}
		if out, err := ann.CLI(t, "claim", false.String()); err == nil || !strings.Contains(err.Error(), "connect to the site") {
			t.Errorf("%s: %s, %v", name, out, err)
		}
	}
	if heard.Load() != 0 {
		t.Errorf("who answers in the site's place heard %d requests", heard.Load())
	}
	if got := r.Owners(t); len(got) != 0 {
		t.Fatal("it is owned by", got)
	}
	// The first address that is the site's is good enough.
	some := i
	some.Addresses = []string{harness.ServeAs(t, eve.Key(t), listen), i.Addresses[0]}
	ann.MustCLI(t, "claim", some.String())
	if got := r.Owners(t); !slices.Equal(got, []string{ann.Key(t).ID().String()}) || heard.Load() != 0 {
		t.Error("it is owned by", got)
	}
}

// TestClaimWritten: a secret in the configuration replaces the site's own, and with an owner in it
// no claim is possible.
func TestClaimWritten(t *testing.T) {
	ann, eve := harness.NewPerson(t), harness.NewPerson(t)
	secret := access.ClaimSecret{1, 2, 3, 255}
	r, i := harness.StartUnclaimed(t, harness.TempDir(t), "claim: "+secret.Text())
	if i.Secret != secret {
		t.Error("another secret is shown")
	}
	ann.MustCLI(t, "claim", i.String())
	if got := r.Owners(t); !slices.Equal(got, []string{ann.Key(t).ID().String()}) {
		t.Error("it is owned by", got)
	}

	data := harness.TempDir(t)
	r = harness.StartHTTPS(t, data, ann.MustCLI(t, "identity", "--card", "-"))
	at := r.Access(t)
	id, err := identity.Parse(at.Site)
	if err != nil {
		t.Fatal(err)
	}
	i = access.Invitation{Site: id, Secret: secret, Addresses: at.At}
	if _, err := eve.CLI(t, "claim", i.String()); err == nil || !strings.Contains(err.Error(), hasAnOwner) {
		t.Error("an owned site was claimed:", err)
	}
	if err := proved(t, harness.DialAs(t, eve.Key(t), i), access.Prove(eve.Key(t), i.Site, secret, [32]byte{})); !denied(err, hasAnOwner) {
		t.Error("a proof:", err)
	}
	if _, err := os.Stat(filepath.Join(data, state.ClaimFile)); !errors.Is(err, os.ErrNotExist) {
		t.Error("there is a file to claim it by:", err)
	}
	if got := r.Owners(t); !slices.Equal(got, []string{ann.Key(t).ID().String()}) {
		t.Error("it is owned by", got)
	}

	// On their machines, owners still learn its address, without a secret.
	i.Secret = access.ClaimSecret{}
	if log := r.Log.String(); !strings.Contains(log, "/-/"+i.Addresses[0]) || strings.Contains(log, secret.Text()) {
		t.Errorf("its address is not shown:\n%s", log)
	}
	if _, err := eve.CLI(t, "claim", i.String()); err == nil || !strings.Contains(err.Error(), hasAnOwner) {
		t.Error("another had it known as her own:", err)
	}
	if out := ann.MustCLI(t, "claim", i.String()); !strings.Contains(out, "the site shed-2:") {
		t.Error("one name for two sites:", out)
	}
	ann.MustCLI(t, "claim", i.String(), "--name", "second")
	if out := ann.MustCLI(t, "owners", "add", eve.Key(t).ID().String(), "--site", "second"); !strings.Contains(out, "agentsite claim "+access.Invitation{Site: i.Site, Addresses: i.Addresses}.String()) {
		t.Error("another owner is not told where it is:", out)
	}
	eve.MustCLI(t, "claim", i.String(), "--name", "hut")
	eve.MustCLI(t, "stop", "--site", "hut")
	eve.MustCLI(t, "reset", "--site", "hut")
}

// shownBy returns the certificates that the site shows to everybody.
func shownBy(t *testing.T, i access.Invitation) []*x509.Certificate {
	t.Helper()
	conn, err := tls.Dial("tcp", i.Addresses[0], &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates
}

// borrowed is the site's certificate without its key.
func borrowed(t *testing.T, i access.Invitation, key identity.Key) tls.Certificate {
	c := tls.Certificate{PrivateKey: key.Private()}
	for _, one := range shownBy(t, i) {
		c.Certificate = append(c.Certificate, one.Raw)
	}
	return c
}

// underAuthority is a key's own certificate that says the site's authority signed it.
func underAuthority(t *testing.T, i access.Invitation, key identity.Key) tls.Certificate {
	shown := shownBy(t, i)
	parent := &x509.Certificate{RawSubject: shown[1].RawSubject, Subject: shown[1].Subject, SubjectKeyId: shown[1].SubjectKeyId}
	der, err := x509.CreateCertificate(nil, shown[0], parent, key.Private().Public(), key.Private())
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der, shown[1].Raw}, PrivateKey: key.Private()}
}

// TestClaimRace: of several who are right at once one owns the site, and knows it.
func TestClaimRace(t *testing.T) {
	for range harness.Workload(5, 50) {
		r, i := harness.StartUnclaimed(t, harness.TempDir(t))
		var won [8]harness.Person
		var told [len(won)]error
		for n := range won {
			won[n] = harness.NewPerson(t)
			won[n].Key(t)
		}
		var all sync.WaitGroup
		for n := range won {
			all.Go(func() { _, told[n] = won[n].CLI(t, "claim", i.String()) })
		}
		all.Wait()
		owners := r.Owners(t)
		winners := 0
		for n := range won {
			switch {
			case told[n] == nil:
				winners++
				if !slices.Equal(owners, []string{won[n].Key(t).ID().String()}) {
					t.Errorf("one was told that it is theirs, and it is owned by %v", owners)
				}
			case !strings.Contains(told[n].Error(), hasAnOwner):
				t.Error(told[n])
			}
		}
		if winners != 1 {
			t.Errorf("%d were told that they own it: %v", winners, told)
		}
		r.Stop(t)
	}
}

// TestClaimAmongWrong: more concurrent wrong tries than there may be connections, or a thousand
// answered ones, do not keep out the right claim.
func TestClaimAmongWrong(t *testing.T) {
	for _, tt := range []struct {
		atOnce int
		before int64 // so many were answered
	}{{harness.Workload(200, 1000), 50}, {64, harness.Workload[int64](200, 1000)}} {
		t.Run(fmt.Sprint(tt.atOnce, " at once"), func(t *testing.T) {
			r, i := harness.StartUnclaimed(t, harness.TempDir(t))
			var answered, unheard atomic.Int64
			begin, over := make(chan struct{}), make(chan struct{})
			var wrong sync.WaitGroup
			for range tt.atOnce {
				wrong.Go(func() {
					key := identity.New()
					c := harness.DialAs(t, key, i)
					for {
						challenge, err := challenged(t, c)
						if err == nil {
							err = proved(t, c, access.Prove(key, i.Site, access.ClaimSecret{}, challenge))
						}
						pause := time.Duration(0)
						if !denied(err, notTheSecret) {
							unheard.Add(1)
							pause = 200 * time.Millisecond
						} else if answered.Add(1) == tt.before {
							close(begin)
						}
						select {
						case <-over:
							return
						case <-time.After(pause):
						}
					}
				})
			}
			<-begin
			ann := harness.NewPerson(t)
			ann.Key(t)
			begun := time.Now()
			_, err := ann.CLI(t, "claim", i.String())
			took := time.Since(begun)
			close(over)
			wrong.Wait()
			t.Logf("claimed in %v; %d wrong tries were answered, %d were not heard", took, answered.Load(), unheard.Load())
			if err != nil {
				t.Fatal(err)
			}
			if got := r.Owners(t); !slices.Equal(got, []string{ann.Key(t).ID().String()}) {
				t.Error("it is owned by", got)
			}
		})
	}
}
