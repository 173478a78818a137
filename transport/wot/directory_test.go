package wot_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"agentsite/node/identity"
	"agentsite/node/things"
	"agentsite/transport/adapter"
	"agentsite/transport/adapter/adaptertest"
	"agentsite/transport/wot"

	"github.com/go-json-experiment/json"
)

// directory is a site that is one, and what was stored last.
type directory struct {
	*testing.T
	*adaptertest.Site
	token string // of a principal that may register and read
}

func newDirectory(t *testing.T) *directory {
	t.Helper()
	s := adaptertest.New(t, nil)
	s.Things = things.Open(things.Options{Write: func([]byte) error { return nil }, Now: s.Now, Own: s.Key.ID().String() + "/things/"})
	t.Cleanup(s.Things.Close)
	s.Serve(t, wot.Routes(&s.Site))
	token, _ := s.Token(t, "keeper", "read greenhouse, use register_thing, use list_things")
	return &directory{t, s, token}
}

const lamp = `{"@context":"https://www.w3.org/2022/wot/td/v1.1","id":"urn:example:lamp","title":"Lamp","security":"none","securityDefinitions":{"none":{"scheme":"nosec"}}%s}`

func lampWith(more string) string { return fmt.Sprintf(lamp, more) }

func anonymous(more string) string {
	return strings.Replace(lampWith(more), `"id":"urn:example:lamp",`, "", 1)
}

const lampPath = "/things/urn:example:lamp"

// ask sends a request with the type of a description, unless headers say another.
func (d *directory) ask(verb, path, body string, headers ...string) (*http.Response, string) {
	d.Helper()
	if len(headers) == 0 && body != "" {
		headers = []string{"Content-Type", "application/td+json"}
	}
	return d.Site.Ask(d.T, verb, path, d.token, body, headers...)
}

// want asks, and fails where the status is another one.
func (d *directory) want(status int, verb, path, body string, headers ...string) (*http.Response, string) {
	d.Helper()
	res, text := d.ask(verb, path, body, headers...)
	if res.StatusCode != status {
		d.Errorf("%s %s: %s %s, want %d", verb, path, res.Status, text, status)
	}
	return res, text
}

// enriched has the members of a directory's description that the tests check.
type enriched struct {
	Context      any    `json:"@context"`
	ID           string `json:"id"`
	Title        string `json:"title"`
	Description  string `json:"description"`
	Base         string `json:"base"`
	Registration struct {
		Created   string  `json:"created"`
		Modified  string  `json:"modified"`
		Expires   string  `json:"expires"`
		TTL       float64 `json:"ttl"`
		Retrieved string  `json:"retrieved"`
	} `json:"registration"`
}

func (d *directory) get(path string) (e enriched) {
	d.Helper()
	_, text := d.want(200, "GET", path, "")
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		d.Error(err)
	}
	return e
}

// problem asks for what is refused, and checks that this is a problem (RFC 7807).
func (d *directory) problem(status int, verb, path, body string, headers ...string) string {
	d.Helper()
	res, text := d.want(status, verb, path, body, headers...)
	var p struct {
		Title  string `json:"title"`
		Status int    `json:"status"`
		Detail string `json:"detail"`
	}
	if err := json.Unmarshal([]byte(text), &p); err != nil || p.Status != status || p.Title == "" || p.Detail == "" || res.Header.Get("Content-Type") != "application/problem+json" {
		d.Errorf("%s %s: %v %s %s", verb, path, err, res.Header, text)
	}
	return text
}

func (d *directory) ids(path string) (ids []string, links string) {
	d.Helper()
	res, text := d.want(200, "GET", path, "")
	var all []enriched
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		d.Error(err, text)
	}
	for _, e := range all {
		ids = append(ids, e.ID)
	}
	return ids, strings.Join(res.Header.Values("Link"), "\n")
}

// wait reads events until one has the text, and returns all lines until then.
func (d *directory) wait(lines *bufio.Reader, text string) (all string) {
	d.Helper()
	for {
		line, err := lines.ReadString('\n')
		if all += line; err != nil {
			d.Fatalf("%v after %q, which has no %s", err, all, text)
		}
		if strings.Contains(line, text) {
			return all
		}
	}
}

// listen opens a stream of events until its test ends.
func (d *directory) listen(path, after string) *bufio.Reader {
	d.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	r, err := http.NewRequestWithContext(ctx, "GET", d.URL+path, nil)
	if err != nil {
		d.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+d.token)
	if after != "" {
		r.Header.Set("Last-Event-ID", after)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		d.Fatal(err)
	}
	d.Cleanup(func() { cancel(); res.Body.Close() })
	if res.StatusCode != 200 || res.Header.Get("Content-Type") != "text/event-stream" {
		d.Errorf("%s: %s %s", path, res.Status, res.Header)
	}
	return bufio.NewReader(res.Body)
}

// TestDirectoryIsDescribed: the site's description is that of a directory, with what its reader may do.
func TestDirectoryIsDescribed(t *testing.T) {
	d := newDirectory(t)
	site, _ := td(t, d.Site, "/.well-known/wot", d.token)
	for _, name := range []string{"retrieveThing", "createThing", "createAnonymousThing", "updateThing", "partiallyUpdateThing", "deleteThing"} {
		if site.Actions[name] == nil {
			t.Errorf("no %s in %v", name, keys(site.Actions))
		}
	}
	if things := site.Properties["things"]; things == nil || things["type"] != "array" || len(site.Events) != 3 {
		t.Error(keys(site.Properties), keys(site.Events))
	}
	reader, _ := d.Token(t, "reader", "read *, use list_things")
	site, _ = td(t, d.Site, "/.well-known/wot", reader)
	if site.Actions["retrieveThing"] == nil || site.Actions["createThing"] != nil {
		t.Error(keys(site.Actions))
	}
	for _, token := range []string{d.token, ""} {
		if _, text := d.Site.Ask(t, "GET", "/.well-known/wot", token, ""); !strings.Contains(text, `"@type":["lmos:Tool","ThingDirectory"]`) {
			t.Error(text)
		}
	}
	if e := d.get("/things/" + url.PathEscape(site.ID)); e.ID != site.ID {
		t.Error(e.ID)
	}
	d.problem(403, "PUT", "/things/"+url.PathEscape(site.ID), strings.Replace(lampWith(""), "urn:example:lamp", site.ID, 1))
}

// TestDirectoryOfTheRealm: a caller that may read registrations sees links to the sites of the
// realm.
func TestDirectoryOfTheRealm(t *testing.T) {
	d := newDirectory(t)
	d.Sites = func() []adapter.OtherSite {
		return []adapter.OtherSite{{ID: "did:key:z6MkOther", Name: "shed", URL: "https://shed.local:8474"}}
	}
	const id, at = "did:key:z6MkOther/things/site:shed", "/things/did:key:z6MkOther%2Fthings%2Fsite:shed"
	if ids, _ := d.ids("/things"); !slices.Contains(ids, id) {
		t.Error(ids)
	}
	if _, text := d.want(200, "GET", at, ""); !strings.Contains(text, `"@type":"ThingLink"`) || !strings.Contains(text, `{"rel":"describedby","href":"https://shed.local:8474/.well-known/wot","type":"application/td+json"}`) {
		t.Error(text)
	}
	d.want(201, "PUT", at, strings.Replace(lampWith(""), "urn:example:lamp", id, 1)) // it registers itself
	if ids, _ := d.ids("/things"); len(ids) != 3 {
		t.Error(ids)
	}
	if e := d.get(at); e.Title != "Lamp" {
		t.Errorf("%+v", e)
	}
	// Nobody takes a site's place before others, whoever has its ID: its own record says where it is.
	d.token, _ = d.Token(t, "reader", "use list_things")
	if _, text := d.want(200, "GET", at, ""); !strings.Contains(text, `"@type":"ThingLink"`) {
		t.Error(text)
	}
	if _, text := d.want(200, "GET", "/things", ""); strings.Count(text, id) != 1 || !strings.Contains(text, "https://shed.local:8474") {
		t.Error(text)
	}
	d.token, _ = d.Token(t, "stranger", "read *")
	if ids, _ := d.ids("/things"); slices.Contains(ids, id) {
		t.Error(ids)
	}
	d.problem(404, "GET", at, "")
}

// TestDirectoryEventsEnd: a stream of events ends with the permission, at once.
func TestDirectoryEventsEnd(t *testing.T) {
	d := newDirectory(t)
	var revoke func()
	d.token, revoke = d.Token(t, "ann", "use register_thing")
	d.want(201, "PUT", lampPath, lampWith(""))
	heard := d.listen("/events", "")
	revoke()
	if rest, err := io.ReadAll(heard); err != nil {
		t.Errorf("%v %q", err, rest)
	}
}

// TestRegistration: a directory accepts the description that a site registers elsewhere.
func TestRegistration(t *testing.T) {
	d := newDirectory(t)
	id, text, err := wot.Registration(identity.New().ID(), "shed", "https://shed.local:8474")
	if err != nil {
		t.Fatal(err)
	}
	d.want(201, "PUT", "/things/"+url.PathEscape(id), string(text))
}

// TestDirectoryRates: the rate of a permission counts, and so does its end.
func TestDirectoryRates(t *testing.T) {
	d := newDirectory(t)
	var revoke func()
	d.token, revoke = d.Token(t, "rare", "use register_thing 2/h, use list_things 2/h")
	d.want(201, "PUT", lampPath, lampWith(""))
	d.want(204, "PUT", lampPath, lampWith(""))
	d.problem(429, "PUT", lampPath, lampWith(""))
	d.want(200, "GET", lampPath, "")
	d.want(200, "GET", lampPath, "")
	d.problem(429, "GET", lampPath, "")
	revoke()
	d.problem(401, "GET", lampPath, "")
}
