package wot_test

import (
	"fmt"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
)

// An assertion of W3C WoT Discovery is tried by a function, or there is a reason why it is not.
type assertion struct {
	ids string // one or some, which one function tries
	try func(d *directory)
	why string
}

var optional = []assertion{
	{ids: "tdd-search-sparql tdd-search-sparql-version tdd-search-sparql-method-get tdd-search-sparql-method-post tdd-search-sparql-resp-select-ask tdd-search-sparql-resp-describe-construct tdd-search-sparql-error tdd-search-sparql-federation tdd-search-sparql-federation-version",
		why: "MAY: a site has no SPARQL engine, which would be larger than the program"},
	{ids: "tdd-search-large-tdds", why: "RECOMMENDED: at most 256 things are registered, and they are listed by pages"},
	{ids: "tdd-http-error-response-lang", why: "MAY: the texts are English"},
	{ids: "tdd-things-representation-alternate-input tdd-http-representation-alternate-output", why: "MAY: JSON is the only form"},
	{ids: "tdd-notification-data-create-full tdd-notification-data-update-diff tdd-notification-data-update-id", why: "MAY, and the third is about the second: diff is refused, as tdd-http-unsupported-feature says"},
	{ids: "tdd-things-list-pagination-order tdd-things-list-pagination-orderable tdd-things-list-pagination-order-nextlink tdd-things-list-pagination-order-utf-8", why: "commented out in the specification, and about sorting by other members, which is refused"},
}

// TestDirectoryAssertions tries the assertions of the specification about directories.
func TestDirectoryAssertions(t *testing.T) {
	all := slices.Concat(optional, directoryAssertions)
	text, err := os.ReadFile("testdata/tdd-assertions.txt")
	if err != nil {
		t.Fatal(err)
	}
	published := strings.Fields(string(text))
	if len(published) != 85 {
		t.Errorf("%d assertions were published", len(published))
	}
	named := make(map[string]bool)
	for _, a := range all {
		for id := range strings.FieldsSeq(a.ids) {
			if named[id] || !slices.Contains(published, id) {
				t.Errorf("%s is twice in the table, or not in the specification", id)
			}
			named[id] = true
		}
		if a.try == nil {
			if a.why == "" {
				t.Errorf("%s is neither tried, nor is said why not", a.ids)
			}
			continue
		}
		t.Run(a.ids, func(t *testing.T) { a.try(newDirectory(t)) })
	}
	for _, id := range published {
		if !named[id] {
			t.Errorf("%s is not in the table", id)
		}
	}
}

var directoryAssertions = []assertion{
	{ids: "tdd-context-injection tdd-registrationinfo-vocab-created tdd-registrationinfo-vocab-modified tdd-registrationinfo-vocab-retrieved tdd-absolute-time", try: func(d *directory) {
		d.want(201, "PUT", lampPath, lampWith(`,"registration":{"created":"2001-01-01T00:00:00Z","modified":"x","retrieved":7}`))
		e := d.get(lampPath)
		if s := fmt.Sprint(e.Context); !strings.Contains(s, "https://www.w3.org/2022/wot/discovery") || !strings.Contains(s, "https://www.w3.org/2022/wot/td/v1.1") {
			d.Error(s)
		}
		for name, text := range map[string]string{"created": e.Registration.Created, "modified": e.Registration.Modified, "retrieved": e.Registration.Retrieved} {
			if at, err := time.Parse(time.RFC3339, text); err != nil || time.Since(at) > time.Minute {
				d.Errorf("%s is %q: %v", name, text, err)
			}
		}
		if e.Registration.Expires != "" || e.Registration.TTL != 0 {
			d.Errorf("it ends: %+v", e.Registration)
		}
	}},
	{ids: "tdd-registrationinfo-vocab-expires tdd-registrationinfo-vocab-ttl", try: func(d *directory) {
		d.want(201, "PUT", lampPath, lampWith(`,"registration":{"expires":"2099-01-01T00:00:00+01:00"}`))
		if e := d.get(lampPath); e.Registration.Expires != "2098-12-31T23:00:00Z" {
			d.Errorf("%+v", e.Registration)
		}
		d.want(204, "PUT", lampPath, lampWith(`,"registration":{"expires":"2099-01-01T00:00:00Z","ttl":100}`))
		e := d.get(lampPath)
		if at, err := time.Parse(time.RFC3339, e.Registration.Expires); err != nil || time.Until(at) > 101*time.Second || e.Registration.TTL != 100 {
			d.Errorf("%+v %v", e.Registration, err)
		}
		for _, wrong := range []string{`{"ttl":0}`, `{"ttl":"1"}`, `{"ttl":1e12}`, `{"expires":"2001-01-01T00:00:00Z"}`, `{"expires":"2099-01-01T00:00:00"}`, `[]`} {
			d.problem(400, "PUT", lampPath, lampWith(`,"registration":`+wrong))
		}
	}},
	{ids: "tdd-registrationinfo-expiry-purge", try: func(d *directory) {
		heard := d.listen("/events", "")
		d.want(201, "PUT", lampPath, lampWith(`,"registration":{"ttl":1}`))
		d.wait(heard, "event: thing_deleted") // by itself
		d.problem(404, "GET", lampPath, "")
	}},
	{ids: "tdd-anonymous-td-identifier tdd-anonymous-td-local-uuid tdd-things-create-anonymous-td tdd-things-create-anonymous-id tdd-things-create-anonymous-td-resp tdd-things-create-anonymous-contenttype", try: func(d *directory) {
		res, _ := d.want(201, "POST", "/things", anonymous(""))
		at := res.Header.Get("Location")
		id, err := url.PathUnescape(strings.TrimPrefix(at, "/things/"))
		if err != nil || !regexp.MustCompile(`^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(id) {
			d.Errorf("%q %v", at, err)
		}
		if e := d.get(at); e.ID != id || e.Title != "Lamp" {
			d.Errorf("%+v", e)
		}
		if ids, _ := d.ids("/things"); !slices.Contains(ids, id) {
			d.Error(ids)
		}
		d.want(201, "POST", "/things", anonymous(""), "Content-Type", "application/json")
		d.problem(415, "POST", "/things", anonymous(""), "Content-Type", "text/turtle")
	}},
	{ids: "tdd-http-error-response tdd-http-error-response-utf-8 tdd-validation-response-utf-8", try: func(d *directory) {
		d.problem(404, "GET", "/things/urn:none", "")
		d.problem(400, "PUT", lampPath, `{"a":1,"a":2}`)
		d.problem(400, "PUT", lampPath, "")
		d.problem(415, "PATCH", lampPath, "{}")
		d.problem(405, "PATCH", "/things", "{}")
		d.problem(405, "POST", lampPath, "{}")
		d.problem(413, "PUT", lampPath, strings.Repeat(" ", 300<<10))
		d.problem(404, "GET", "/events/thing_moved", "")
		d.problem(403, "PUT", "/things/site:zorilla", lampWith(""))
		d.token = "wrong"
		d.problem(401, "GET", "/things", "")
		d.token = ""
		d.problem(401, "PUT", lampPath, lampWith(""))
		// The media type of problems has no parameter; its JSON is UTF-8 (RFC 8259, section 8.1).
	}},
	{ids: "tdd-http-head", try: func(d *directory) {
		d.want(201, "PUT", lampPath, lampWith(""))
		for path, kind := range map[string]string{"/things": "application/ld+json", lampPath: "application/td+json", "/events": "text/event-stream", "/events/thing_created": "text/event-stream"} {
			if res, text := d.want(200, "HEAD", path, ""); text != "" || res.Header.Get("Content-Type") != kind {
				d.Errorf("%s: %q %s", path, text, res.Header)
			}
		}
	}},
	{ids: "tdd-http-unsupported-feature", try: func(d *directory) {
		d.problem(404, "GET", "/search/sparql?query=SELECT", "")
		d.problem(404, "POST", "/search/sparql", "SELECT")
		d.problem(404, "GET", "/search/jsonpath?query=$", "")
		d.problem(501, "GET", "/events?diff=true", "")
		res, _ := d.want(405, "PATCH", "/things", "{}")
		if res.Header.Get("Allow") != "GET, HEAD, POST" {
			d.Error(res.Header)
		}
	}},
	{ids: "tdd-things-list-only tdd-things-crud tdd-things-crudl", try: func(d *directory) {
		d.want(201, "PUT", lampPath, lampWith(""))
		d.want(200, "GET", lampPath, "")
		d.want(204, "PUT", lampPath, lampWith(`,"description":"x"`))
		d.want(204, "DELETE", lampPath, "")
		d.want(200, "GET", "/things", "")
	}},
	{ids: "tdd-things-read-only-auth", try: func(d *directory) {
		d.want(201, "PUT", lampPath, lampWith(""))
		reader, _ := d.Token(d.T, "reader", "read *, use list_things")
		stranger, _ := d.Token(d.T, "stranger", "read *")
		other, _ := d.Token(d.T, "other", "use register_thing, use list_things")
		d.token = reader
		d.want(200, "GET", lampPath, "")
		for _, r := range [][3]string{{"PUT", lampPath, lampWith("")}, {"POST", "/things", anonymous("")}, {"PATCH", lampPath, "{}"}, {"DELETE", lampPath, ""}} {
			for name, token := range map[string]string{"reader": reader, "stranger": stranger, "": ""} {
				d.token = token
				if token == "" {
					d.problem(401, r[0], r[1], r[2])
				} else if res, text := d.ask(r[0], r[1], r[2]); res.StatusCode != 403 {
					d.Errorf("%s: %s %s", name, res.Status, text)
				}
			}
		}
		d.token = other // may register, but not change what others did
		d.problem(403, "PUT", lampPath, lampWith(""))
		d.problem(403, "PATCH", lampPath, "{}", "Content-Type", "application/merge-patch+json")
		d.problem(403, "DELETE", lampPath, "")
		d.token = stranger // reads what is the site's own, and nothing that is registered
		d.problem(404, "GET", lampPath, "")
		if ids, _ := d.ids("/things"); len(ids) != 2 || slices.Contains(ids, "urn:example:lamp") {
			d.Error(ids)
		}
	}},
	{ids: "tdd-things-default-representation tdd-things-retrieve tdd-things-retrieve-resp tdd-things-retrieve-resp-content-type", try: func(d *directory) {
		d.want(201, "PUT", lampPath, lampWith(`,"x:n":12345678901234567890,"x:o":{"b":[null,1.50]}`))
		for _, path := range []string{lampPath, "/things/urn%3Aexample%3Alamp"} {
			res, text := d.want(200, "GET", path, "")
			if res.Header.Get("Content-Type") != "application/td+json" || !strings.Contains(text, `"x:n":12345678901234567890,"x:o":{"b":[null,1.50]}`) {
				d.Error(res.Header, text)
			}
		}
		d.want(201, "PUT", "/things/http:%2F%2Flamp.example%2Fa%2Fb", strings.Replace(lampWith(""), "urn:example:lamp", "http://lamp.example/a/b", 1))
		if e := d.get("/things/http%3A%2F%2Flamp.example%2Fa%2Fb"); e.ID != "http://lamp.example/a/b" {
			d.Errorf("%+v", e)
		}
	}},
	{ids: "tdd-things-create-known-vs-anonymous tdd-things-create-known-td tdd-things-create-known-contenttype tdd-things-create-known-td-resp", try: func(d *directory) {
		d.problem(400, "POST", "/things", lampWith(""))
		d.problem(400, "PUT", lampPath, anonymous(""))
		d.problem(400, "PUT", "/things/urn:example:other", lampWith(""))
		d.want(201, "PUT", lampPath, lampWith(""))
	}},
	{ids: "tdd-things-update tdd-things-update-contenttype tdd-things-update-resp", try: func(d *directory) {
		d.want(201, "PUT", lampPath, lampWith(`,"description":"old"`))
		was := d.get(lampPath)
		d.want(204, "PUT", lampPath, lampWith(`,"base":"https://lamp.example/"`))
		if e := d.get(lampPath); e.Description != "" || e.Base == "" || e.Registration.Created != was.Registration.Created {
			d.Errorf("%+v", e)
		}
	}},
	{ids: "tdd-things-update-partial tdd-things-update-partial-mergepatch tdd-things-update-partial-contenttype tdd-things-update-partial-partialtd tdd-things-update-partial-resp", try: func(d *directory) {
		merge := []string{"Content-Type", "application/merge-patch+json"}
		d.problem(404, "PATCH", lampPath, `{}`, merge...)
		d.want(201, "PUT", lampPath, lampWith(`,"description":"old","registration":{"ttl":1000}`))
		d.want(204, "PATCH", lampPath, `{"title":"Light","description":null,"base":"https://lamp.example/","registration":{"ttl":null,"expires":"2099-01-01T00:00:00Z"}}`, merge...)
		e := d.get(lampPath)
		if e.Title != "Light" || e.Description != "" || e.Base == "" || e.Registration.TTL != 0 || e.Registration.Expires != "2099-01-01T00:00:00Z" {
			d.Errorf("%+v", e)
		}
		d.problem(415, "PATCH", lampPath, `{}`, "Content-Type", "application/td+json")
		for _, patch := range []string{`{"title":null}`, `{"id":"urn:other"}`, `{"id":null}`, `{"security":"none2"}`, `[]`, `7`} {
			d.problem(400, "PATCH", lampPath, patch, merge...)
		}
		if again := d.get(lampPath); again.Title != "Light" || again.ID != e.ID {
			d.Errorf("a refused patch changed it: %+v", again)
		}
	}},
	{ids: "tdd-things-delete tdd-things-delete-resp", try: func(d *directory) {
		d.want(201, "PUT", lampPath, lampWith(""))
		d.want(204, "DELETE", lampPath, "")
		d.problem(404, "DELETE", lampPath, "")
		d.problem(404, "GET", lampPath, "")
	}},
	{ids: "tdd-things-list-method tdd-things-list-resp tdd-things-list-resp-content-type tdd-things-list-pagination-order-default", try: func(d *directory) {
		for _, id := range []string{"urn:b", "urn:a", "urn:Z", "a:z"} {
			d.want(201, "PUT", "/things/"+id, strings.Replace(lampWith(""), "urn:example:lamp", id, 1))
		}
		ids, _ := d.ids("/things")
		if len(ids) != 6 || !slices.IsSorted(ids) || ids[0] != "a:z" {
			d.Error(ids)
		}
		if res, _ := d.want(200, "GET", "/things", ""); res.Header.Get("Content-Type") != "application/ld+json" {
			d.Error(res.Header)
		}
	}},
	{ids: "tdd-things-list-pagination tdd-things-list-pagination-limit tdd-things-list-pagination-header-nextlink tdd-things-list-pagination-header-nextlink-attr tdd-things-list-pagination-header-nextlink-base tdd-things-list-pagination-header-canonicallink", try: func(d *directory) {
		for i := range 5 {
			d.want(201, "PUT", fmt.Sprint("/things/urn:", i), strings.Replace(lampWith(""), "urn:example:lamp", fmt.Sprint("urn:", i), 1))
		}
		whole, _ := d.ids("/things")
		canonical := regexp.MustCompile(`</things>; rel="canonical"; etag="([^"]+)"`)
		var paged []string
		tags := make(map[string]bool)
		for next, pages := "/things?limit=3", 0; next != ""; pages++ {
			ids, links := d.ids(next)
			paged = append(paged, ids...)
			tag := canonical.FindStringSubmatch(links)
			if tag == nil || len(ids) > 3 || pages > 3 {
				d.Fatal(next, ids, links)
			}
			tags[tag[1]] = true
			next = ""
			if link := regexp.MustCompile(`<([^>]*)>; rel="next"`).FindStringSubmatch(links); link != nil {
				if next = link[1]; !strings.Contains(next, "limit=3") || !strings.Contains(next, fmt.Sprint("offset=", len(paged))) {
					d.Error(next)
				}
			}
		}
		if !slices.Equal(paged, whole) || len(tags) != 1 {
			d.Errorf("%q in pages, and %q; %v", paged, whole, tags)
		}
		d.want(204, "DELETE", "/things/urn:3", "")
		_, links := d.ids("/things?limit=3")
		if tags[canonical.FindStringSubmatch(links)[1]] {
			d.Error("the list is another one, and its etag the same")
		}
		for _, wrong := range []string{"limit=0", "limit=-1", "limit=x", "offset=-1", "format=x", "page=2"} {
			d.problem(400, "GET", "/things?"+wrong, "")
		}
		if ids, _ := d.ids("/things?offset=1000&limit=3"); len(ids) != 0 {
			d.Error(ids)
		}
	}},
	{ids: "tdd-things-list-pagination-order-unsupported", try: func(d *directory) {
		d.problem(400, "GET", "/things?sort_by=title", "")
		d.problem(400, "GET", "/things?sort_order=desc", "")
	}},
	{ids: "tdd-things-list-pagination-collection", try: func(d *directory) {
		_, text := d.want(200, "GET", "/things?limit=1&format=collection", "")
		for _, want := range []string{`"@context":"https://www.w3.org/2022/wot/discovery","@type":"ThingCollection"`, `"total":2`, `"next":"/things?format=collection&limit=1&offset=1"`, `"@id":"/things?format=collection&limit=1&offset=0"`} {
			if !strings.Contains(text, want) {
				d.Errorf("no %s in %s", want, text)
			}
		}
	}},
	{ids: "tdd-validation-syntactic tdd-validation-jsonschema tdd-validation-result tdd-validation-response", try: func(d *directory) {
		for field, more := range map[string]string{
			"(root)":                   `{"@context":"https://www.w3.org/2022/wot/td/v1.1","id":"urn:example:lamp","title":"Lamp","securityDefinitions":{}}`,
			"@context":                 `{"@context":["https://example.com"]}`,
			"id":                       `{"id":"not a uri"}`,
			"title":                    `{"title":7}`,
			"security":                 lampWith(`,"security2":1`),
			"securityDefinitions.none": `{"securityDefinitions":{"none":7}}`,
			"properties.on.forms":      lampWith(`,"properties":{"on":{"forms":[]}}`),
			"actions.go.forms.0.href":  lampWith(`,"actions":{"go":{"forms":[{"href":7}]}}`),
			"events":                   lampWith(`,"events":[]`),
			"links":                    lampWith(`,"links":{}`),
			"registration":             lampWith(`,"registration":7`),
		} {
			if field == "security" {
				more = strings.Replace(lampWith(""), `"security":"none"`, `"security":["none","b"]`, 1)
			}
			text := d.problem(400, "PUT", lampPath, more)
			var p struct {
				Errors []struct{ Field, Description string } `json:"validationErrors"`
			}
			if err := json.Unmarshal([]byte(text), &p, json.MatchCaseInsensitiveNames(true)); err != nil || len(p.Errors) == 0 || p.Errors[0].Description == "" {
				d.Errorf("%v %s", err, text)
			} else if !slices.ContainsFunc(p.Errors, func(e struct{ Field, Description string }) bool { return e.Field == field }) {
				d.Errorf("%s is not named in %s", field, text)
			}
		}
		d.problem(404, "GET", lampPath, "")
		d.want(201, "PUT", lampPath, strings.Replace(lampWith(""), "2022/wot/td/v1.1", "2019/wot/td/v1", 1)) // 1.0, too
	}},
	{ids: "tdd-notification tdd-notification-sse tdd-notification-event-types tdd-notification-data tdd-notification-data-td-id", try: func(d *directory) {
		heard := d.listen("/events", "")
		d.want(201, "PUT", lampPath, lampWith(""))
		d.want(204, "PUT", lampPath, lampWith(`,"description":"x"`))
		d.want(204, "PUT", lampPath, lampWith(`,"description":"x"`)) // changes nothing
		d.want(204, "DELETE", lampPath, "")
		for _, kind := range []string{"thing_created", "thing_updated", "thing_deleted"} {
			d.wait(heard, "event: "+kind)
			if line, err := heard.ReadString('\n'); line != `data: {"id":"urn:example:lamp"}`+"\n" {
				d.Errorf("%q %v", line, err)
			}
		}
	}},
	{ids: "tdd-notification-event-id", try: func(d *directory) {
		first := d.listen("/events", "")
		d.want(201, "PUT", lampPath, lampWith(""))
		last := regexp.MustCompile(`id: (\S+)`).FindStringSubmatch(d.wait(first, "event: "))[1]
		d.want(204, "PUT", lampPath, lampWith(`,"description":"x"`))
		d.want(204, "DELETE", lampPath, "")
		again := d.listen("/events", last)
		if all := d.wait(again, "thing_deleted"); !strings.Contains(all, "thing_updated") || strings.Contains(all, "thing_created") {
			d.Errorf("%q", all)
		}
	}},
	{ids: "tdd-notification-filter-type tdd-notification-data-delete-diff", try: func(d *directory) {
		heard := d.listen("/events/thing_deleted?diff=true", "")
		d.want(201, "PUT", lampPath, lampWith(""))
		d.want(204, "DELETE", lampPath, "")
		all := d.wait(heard, "data: ")
		if strings.Contains(all, "thing_created") || !strings.Contains(all, "event: thing_deleted\ndata: {\"id\":\"urn:example:lamp\"}\n") {
			d.Errorf("%q", all)
		}
	}},
}
