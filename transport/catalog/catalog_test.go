package catalog

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"agentsite/transport/adapter"
	"agentsite/transport/adapter/adaptertest"
	"agentsite/transport/mcp"
	"agentsite/transport/web"
)

var documents = map[string]string{cardPath: cardType, catalogPath: catalogType, apiPath: apiType}

// TestSameForEverybody: everybody gets the same bytes, which name nothing of the site but its ID, and a client that
// has them is told so.
func TestSameForEverybody(t *testing.T) {
	s := adaptertest.New(t, nil)
	s.Protocols = []string{"a2a", "openapi", "wot", "catalog"}
	s.Serve(t, append(Routes(&s.Site), web.MCP(nil, nil)))
	token, _ := s.Token(t, "kim", "read *")
	for path, mediaType := range documents {
		res, text := s.Ask(t, "GET", path, "", "")
		tag := res.Header.Get("ETag")
		if res.StatusCode != 200 || res.Header.Get("Content-Type") != mediaType || tag == "" || len(text) > 1024 ||
			res.Header.Get(
				"Cache-Control",
			) != "public, max-age=3600" || res.Header.Get("Access-Control-Allow-Origin") != "*" || !json.Valid([]byte(text)) {
			t.Errorf("%s: %d bytes, %d %v %s", path, len(text), res.StatusCode, res.Header, text)
		}
		for _, secret := range []string{"zorilla", "greenhouse", "temperature", "kim", adaptertest.SiteToken} {
			if strings.Contains(text, secret) {
				t.Errorf("%s names %s: %s", path, secret, text)
			}
		}
		for _, asker := range []string{token, adaptertest.SiteToken, "wrong"} {
			if _, again := s.Ask(t, "GET", path, asker, ""); again != text {
				t.Errorf("%s differs: %s", path, again)
			}
		}
		if res, again := s.Ask(
			t, "GET", path, "", "", "If-None-Match", tag,
		); res.StatusCode != http.StatusNotModified || again != "" {
			t.Errorf("%s: %d %s", path, res.StatusCode, again)
		}
		if res, body := s.Ask(
			t, "HEAD", path, "", "",
		); res.StatusCode != 200 || body != "" || (res.Header.Get("Link") != "") != (path == apiPath) {
			t.Errorf("HEAD %s: %d %v %s", path, res.StatusCode, res.Header, body)
		}
		if res, _ := s.Ask(t, "POST", path, token, "{}"); res.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("POST %s: %d", path, res.StatusCode)
		}
		for header, value := range map[string]string{"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"} {
			if res, _ := s.Ask(t, "GET", path, "", "", header, value); res.StatusCode != http.StatusForbidden {
				t.Errorf("%s with %s: %d", path, header, res.StatusCode)
			}
		}
	}
	if res, _ := s.Ask(t, "POST", "/mcp", "", "{}"); res.StatusCode != http.StatusUnauthorized {
		t.Errorf("POST /mcp: %d", res.StatusCode)
	}
}

// TestHostIsChecked: a host that was not checked is in no document.
func TestHostIsChecked(t *testing.T) {
	s := adaptertest.New(t, nil)
	h := s.Handler("127.0.0.1:1", Routes(&s.Site))
	for host, want := range map[string]int{"127.0.0.1:1": 200, "evil.example": 403, `127.0.0.1:1"><x`: 403} {
		for path := range documents {
			r := httptest.NewRequest("GET", "http://127.0.0.1:1"+path, nil)
			r.Host = host
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != want || want == 200 && !strings.Contains(w.Body.String(), "http://127.0.0.1:1/") {
				t.Errorf("%s of %s: %d %s", path, host, w.Code, w.Body)
			}
		}
	}
}

// TestOrigins: pages of any origin read the documents where clients sign in.
func TestOrigins(t *testing.T) {
	const host = "garden.example.org"
	h := web.Handler(web.Options{
		Hosts: []string{host}, NamesOnly: true, Routes: PublicRoutes("1.2.3", host),
		SignIn: &web.SignIn{URL: "https://" + host + "/mcp", Base: "https://" + host, Host: host},
	})
	for path := range documents {
		r := httptest.NewRequest("GET", "https://"+host+path, nil)
		r.Header.Set("Origin", "https://any.example")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if got := w.Header()["Access-Control-Allow-Origin"]; w.Code != 200 || !slices.Equal(got, []string{"*"}) ||
			!strings.Contains(w.Header().Get("Access-Control-Expose-Headers"), "ETag") {
			t.Errorf("%s: %d %v", path, w.Code, w.Header())
		}
	}
}

// read decodes one of the documents of routes.
func read(t *testing.T, routes []web.Route, path string, into any) {
	t.Helper()
	i := slices.IndexFunc(routes, func(r web.Route) bool { return r.Pattern == "GET "+path })
	w := httptest.NewRecorder()
	routes[i].Serve(w, httptest.NewRequest("GET", "https://h:8474"+path, nil), web.Caller{})
	if err := json.Unmarshal(w.Body.Bytes(), into); err != nil {
		t.Fatal(err)
	}
}

// TestForms: the documents have the members that their formats require, and name no protocol that is off.
func TestForms(t *testing.T) {
	s := adaptertest.New(t, nil)
	name := regexp.MustCompile(`^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$`) // of the card's schema
	for base, routes := range map[string][]web.Route{
		"https://h:8474":             Routes(&adapter.Site{Key: s.Key, Version: "1.2.3"}),
		"https://garden.example.org": PublicRoutes("1.2.3", "garden.example.org"),
	} {
		var c card
		read(t, routes, cardPath, &c)
		if c.Schema != cardSchema || !name.MatchString(c.Name) || len(c.Description) > 100 || c.Version != "1.2.3" ||
			c.Remotes[0].URL != base+"/mcp" || !slices.Equal(
			c.Remotes[0].Versions, mcp.Versions,
		) || !c.Remotes[0].Headers[0].Secret {
			t.Errorf("%+v", c)
		}
		if base != "https://h:8474" && c.Name != "org.example.garden/agentsite" {
			t.Error(c.Name)
		}
		var all catalog
		read(t, routes, catalogPath, &all)
		if all.Version != "1.0" || len(all.Entries) != 1 || all.Entries[0].URL != base+cardPath || all.Entries[0].Type != cardType || !strings.HasPrefix(all.Entries[0].Identifier, "urn:air:") {
			t.Errorf("%+v", all)
		}
		var links linkset
		read(t, routes, apiPath, &links)
		if len(links.Set) != 1 || links.Set[0].Anchor != base+"/mcp" || links.Set[0].Desc[0].URL != base+cardPath {
			t.Errorf("%+v", links)
		}
	}
}

// TestRegistry: the card says of the program what its entry in registries says.
func TestRegistry(t *testing.T) {
	text, err := os.ReadFile("../../deploy/publish/server.json")
	if err != nil {
		t.Fatal(err)
	}
	var server struct{ Title, Description string }
	if err := json.Unmarshal(text, &server); err != nil || server.Title != title || server.Description != description {
		t.Errorf("%+v %v", server, err)
	}
}
