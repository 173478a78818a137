package supervisor

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	callTimeout = 10 * time.Second
	maxAnswer   = 64 << 10
)

// Client calls the API of the Supervisor that started the program
// (developers.home-assistant.io, docs/api/supervisor/endpoints.md).
type Client struct {
	URL   string // http://172.30.32.2
	Token string // of the environment variable SUPERVISOR_TOKEN
}

// Refused is an answer by which the Supervisor refused a call.
type Refused struct {
	Status int
	Says   string // printable, and of the Supervisor
}

func (r *Refused) Error() string {
	return fmt.Sprintf("the Supervisor of Home Assistant refused it: %d %s", r.Status, r.Says)
}

// Broker is the MQTT broker that an app offers to others.
type Broker struct {
	Host, User, Password string
	Port                 uint16
	TLS                  bool
}

// MQTT returns the broker of this Home Assistant. It is *Refused with status 400 while no app offers one.
func (c *Client) MQTT(ctx context.Context) (Broker, error) {
	var data struct {
		Host     string         `json:"host"`
		Port     jsontext.Value `json:"port"` // a number; the documentation has a text
		TLS      bool           `json:"ssl"`
		User     string         `json:"username"`
		Password string         `json:"password"`
	}
	if err := c.call(ctx, http.MethodGet, "/services/mqtt", nil, &data); err != nil {
		return Broker{}, err
	}
	port, err := strconv.ParseUint(strings.Trim(string(data.Port), `"`), 10, 16)
	if err != nil || port == 0 || data.Host == "" {
		return Broker{}, fmt.Errorf("the Supervisor of Home Assistant names no broker that can be called: %.80q, port %.20q",
			data.Host, data.Port)
	}
	return Broker{data.Host, data.User, data.Password, uint16(port), data.TLS}, nil
}

// Announce tells Home Assistant of the MCP server at a URL. The same app is announced once, whatever its URL is; the
// result names the announcement. (home-assistant/core pull request 180378, for Home Assistant 2026.10.)
func (c *Client) Announce(ctx context.Context, url string) (uuid string, err error) {
	type config struct {
		URL string `json:"url"`
	}
	var data struct {
		UUID string `json:"uuid"`
	}
	err = c.call(ctx, http.MethodPost, "/discovery", struct {
		Service string `json:"service"`
		Config  config `json:"config"`
	}{"mcp", config{url}}, &data)
	if err == nil && !isUUID(data.UUID) {
		err = fmt.Errorf("the Supervisor of Home Assistant answered with no announcement: %.80q", data.UUID)
	}
	return data.UUID, err
}

// isUUID reports whether text is the name of an announcement (supervisor/validate.py: uuid_match; with the hyphens of
// its documentation).
func isUUID(text string) bool {
	return text != "" && len(text) <= 64 && !strings.ContainsFunc(text, func(r rune) bool {
		return !unicode.In(r, unicode.ASCII_Hex_Digit) && r != '-'
	})
}

// Withdraw takes an announcement back. One that is not there is withdrawn.
func (c *Client) Withdraw(ctx context.Context, uuid string) error {
	err := c.call(ctx, http.MethodDelete, "/discovery/"+uuid, nil, nil)
	if r, ok := err.(*Refused); ok && r.Status == http.StatusNotFound {
		return nil
	}
	return err
}

// Hostname returns the name of the machine, "" where it is not known.
func (c *Client) Hostname(ctx context.Context) string {
	var data struct {
		Hostname string `json:"hostname"`
	}
	if c.call(ctx, http.MethodGet, "/info", nil, &data) != nil {
		return ""
	}
	return data.Hostname
}

// call makes one call. data is decoded into into, if that is not nil.
func (c *Client) call(ctx context.Context, verb, path string, body, into any) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return err
		}
	}
	r, err := http.NewRequestWithContext(ctx, verb, c.URL+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+c.Token)
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	res, err := client.Do(r)
	if err != nil {
		return fmt.Errorf("the Supervisor of Home Assistant does not answer: %w", err)
	}
	defer res.Body.Close()
	text, err = io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("the Supervisor of Home Assistant did not answer to the end: %w", err)
	}
	var answer struct {
		Result  string         `json:"result"`
		Message string         `json:"message"`
		Data    jsontext.Value `json:"data"`
	}
	err = json.Unmarshal(text, &answer)
	switch {
	case res.StatusCode != http.StatusOK || err == nil && answer.Result != "ok":
		return &Refused{res.StatusCode, printable(answer.Message)}
	case err != nil:
		return fmt.Errorf("the Supervisor of Home Assistant answered something else than JSON: %w", err)
	case into == nil:
		return nil
	}
	if err := json.Unmarshal(answer.Data, into); err != nil {
		return fmt.Errorf("the Supervisor of Home Assistant answered something else than it documents: %w", err)
	}
	return nil
}

// client follows no redirect and knows no proxy: the token is for the Supervisor.
var client = &http.Client{
	Transport:     &http.Transport{DisableKeepAlives: true},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// printable returns at most 200 characters of a text.
func printable(text string) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
	if runes := []rune(text); len(runes) > 200 {
		text = string(runes[:200])
	}
	return text
}
