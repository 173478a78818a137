package notify

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf16"

	"agentsite/agents/agent"
	"agentsite/node/occurrence"
	"agentsite/node/outbox"
	"agentsite/transport/web/outbound"

	"github.com/go-json-experiment/json"
)

// Receiver is one receiver of the configuration.
type Receiver struct {
	Ntfy      string   `json:"ntfy,omitempty" jsonschema:"the URL of a topic at an ntfy server, such as https://ntfy.sh/garden-7f3k: who knows it reads along, unless the server protects it"`
	Webhook   string   `json:"webhook,omitempty" jsonschema:"the https URL that each message is posted to as JSON"`
	Assistant string   `json:"home_assistant,omitempty" jsonschema:"the URL of Home Assistant, such as https://home.example.org:8123, whose service sends the message on; a long-lived access token of it is in key_file"`
	Service   string   `json:"service,omitempty" jsonschema:"the service of Home Assistant for notifications, such as notify.mobile_app_ann"`
	Plain     bool     `json:"plain,omitempty" jsonschema:"whether the URL may be http:// at an address of your own network, where everybody on the way can read the messages and the token; off when not written"`
	Telegram  string   `json:"telegram,omitempty" jsonschema:"the number of a chat, in which a bot of yours is; its token is in key_file"`
	Mail      string   `json:"mail,omitempty" jsonschema:"an address for e-mail, such as ann@example.org"`
	Server    string   `json:"server,omitempty" jsonschema:"the server that sends the e-mail, such as mail.example.org:465, or :587 with STARTTLS"`
	From      string   `json:"from,omitempty" jsonschema:"the address that the e-mail is from; the receiver's when not written"`
	User      string   `json:"user,omitempty" jsonschema:"the user at the server, whose password is in key_file; none when not written"`
	KeyFile   string   `json:"key_file,omitempty" jsonschema:"the name of a file beside the configuration with the token for the ntfy server, Home Assistant or the Telegram bot, the secret that the webhook is signed with (Standard Webhooks), or the password for the e-mail; never the secret itself"`
	Body      string   `json:"body,omitempty" jsonschema:"the JSON that a webhook is sent, with {title}, {text}, {kind}, {link}, {site}, {time} and {id} in its texts; all of a message when not written"`
	About     []string `json:"about,omitempty" jsonschema:"what it is told: stop, device, lease, effect, approval, permission, sign_in, wish, supply, power_off, rollback, and message for what agents ask to be told; all when not written"`
}

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"

// isTopic accepts the name of a topic of ntfy.
func isTopic(name string) bool { return len(name) <= 64 && strings.Trim(name, letters+"-") == "" }

// isPage accepts the URL of a page.
func isPage(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Scheme == "https" && u.Host != "" && u.User == nil && u.RawQuery == "" && u.Fragment == "" &&
		len(text) <= 256 && !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
}

// check returns the key of a mistake, and the mistake.
func (r Receiver) check() (key string, err error) {
	ways := 0
	for _, way := range []string{r.Ntfy, r.Webhook, r.Assistant, r.Telegram, r.Mail} {
		if way != "" {
			ways++
		}
	}
	switch {
	case ways != 1:
		return "", errors.New("takes one of ntfy, webhook, home_assistant, telegram and mail")
	case r.KeyFile != "" && !agent.IsFile(r.KeyFile):
		return "key_file", errors.New("takes the name of a file beside the configuration, such as ntfy.token, and never the secret itself")
	case r.Body != "" && r.Webhook == "":
		return "body", errors.New("is of a webhook")
	case r.Service != "" && r.Assistant == "":
		return "service", errors.New("is of home_assistant")
	case r.Plain && !strings.HasPrefix(cmp.Or(r.Ntfy, r.Webhook, r.Assistant), "http://"):
		return "plain", errors.New("is for http:// only; remove it")
	}
	for _, kind := range r.About {
		if kind != message && !slices.Contains(occurrence.Kinds, occurrence.Kind(kind)) {
			return "about", fmt.Errorf("takes %s and %s, not %.40q", words(occurrence.Kinds), message, kind)
		}
	}
	if key, err := r.checkMail(); err != nil || r.Mail != "" {
		return key, err
	}
	if r.Telegram != "" {
		switch {
		case !isChat(r.Telegram):
			return "telegram", errors.New("takes the number of a chat, or the name of a channel such as \"@garden\"")
		case r.KeyFile == "":
			return "telegram", errors.New("needs key_file: the name of a file with the bot's token")
		}
		return "", nil
	}
	if r.Assistant != "" {
		return r.checkAssistant()
	}
	if r.Webhook != "" {
		if err := r.checkURL(r.Webhook, "a webhook", "https://hooks.example.com/agentsite"); err != nil {
			return "webhook", err
		}
		if r.Body != "" {
			if _, err := parseBody(r.Body); err != nil {
				return "body", err
			}
		}
		return "", nil
	}
	const example = "https://ntfy.sh/garden-7f3k"
	if err := r.checkURL(r.Ntfy, "a topic", example); err != nil {
		return "ntfy", err
	}
	if u, err := url.Parse(r.Ntfy); err != nil || u.RawQuery != "" || !isTopic(path.Base(u.Path)) {
		return "ntfy", fmt.Errorf("takes the URL of a topic such as %s, not %.80q", example, r.Ntfy)
	}
	return "", nil
}

func words(kinds []occurrence.Kind) string {
	var all []string
	for _, k := range kinds {
		all = append(all, string(k))
	}
	return strings.Join(all, ", ")
}

// sender returns how a receiver is told.
func (a *Agent) sender(r Receiver) outbox.Sender {
	if r.Mail != "" {
		return &mailer{Receiver: r, world: &a.world}
	}
	s := &sender{site: a.world.Site, Receiver: r, secret: a.world.Secret, now: func() time.Time { t, _ := a.world.Now(); return t }}
	u, err := url.Parse(cmp.Or(r.Ntfy, r.Webhook, r.Assistant, a.world.telegram, telegramAPI))
	if err == nil {
		s.url, s.client = u, outbound.Client(sendTimeout, u.Hostname())
	}
	return s
}

// readKey returns what key_file has; "" without one.
func (r Receiver) readKey(secret func(name string) (string, error)) (string, error) {
	if r.KeyFile == "" {
		return "", nil
	}
	text, err := secret(r.KeyFile)
	if err != nil {
		err = fmt.Errorf("its key_file: %w", err)
	}
	return text, err
}

// sender posts to a URL.
type sender struct {
	Receiver
	site   string
	url    *url.URL
	client *http.Client
	secret func(name string) (string, error)
	now    func() time.Time // by the site's clock
}

// Send implements outbox.Sender. It reads only the status of the answer.
func (s *sender) Send(ctx context.Context, m outbox.Message) error {
	secret, err := s.readKey(s.secret)
	if err != nil {
		return err
	}
	request := s.ntfy
	switch {
	case s.Webhook != "":
		request = s.webhook
	case s.Assistant != "":
		request = s.assistant
	case s.Telegram != "":
		request = s.telegram
	}
	r, err := request(ctx, m, secret)
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "agentsite")
	res, err := s.client.Do(r)
	if err != nil {
		return outbound.Quiet(err, s.url.Host)
	}
	res.Body.Close()
	if res.StatusCode/100 == 2 {
		return nil
	}
	err = fmt.Errorf("%w%s", &outbound.StatusError{Host: s.url.Host, Code: res.StatusCode}, remedy(res.StatusCode))
	switch {
	case res.StatusCode == http.StatusRequestEntityTooLarge, res.StatusCode == http.StatusUnprocessableEntity,
		res.StatusCode == http.StatusBadRequest && s.Ntfy+s.Webhook != "": // others answer so, too, where a chat or a service is not there
		return &outbox.Refused{Err: err}
	}
	if after, ok := outbound.RetryAfter(res.Header); ok {
		return &outbox.Later{Err: err, After: after}
	}
	if res.StatusCode/100 == 4 && res.StatusCode != http.StatusRequestTimeout && res.StatusCode != http.StatusTooManyRequests {
		return &outbox.Later{Err: err, After: time.Hour} // an owner has to mend it
	}
	return err
}

// remedy ends an error of a status with what an owner can do.
func remedy(code int) string {
	switch {
	case code/100 == 3:
		return ", which leads elsewhere: write the URL that it leads to"
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return ", which is for a wrong or missing key_file, or one that may not do this"
	case code == http.StatusNotFound:
		return ", which is for a wrong URL"
	}
	return ""
}

// post makes a request.
func post(ctx context.Context, to *url.URL, body any) (*http.Request, []byte, error) {
	text, ok := body.([]byte)
	if !ok {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return nil, nil, err
		}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to.String(), bytes.NewReader(text))
	return r, text, err
}

// published is a message as ntfy takes it (ntfy.sh, Publish as JSON).
type published struct {
	Topic    string   `json:"topic"`
	Title    string   `json:"title"`
	Message  string   `json:"message"`
	Priority int      `json:"priority"` // 1 to 5
	Tags     []string `json:"tags,omitzero"`
	Click    string   `json:"click,omitzero"`
	Actions  []action `json:"actions,omitzero"`
}

type action struct {
	Action string `json:"action"`
	Label  string `json:"label"`
	URL    string `json:"url"`
}

// The server takes 4,096 bytes of a message, and makes a file of what is longer, or refuses it. It reads twice as much
// JSON, and refuses more (binwiederhier/ntfy server/server.go, transformBodyJSON).
const (
	maxNtfy     = 4000
	maxNtfyJSON = 8000
)

// cut returns at most so many bytes of a text, of whole characters.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len("…")], "") + "…"
}

// cutRunes returns at most so many characters of a text.
func cutRunes(text string, most int) string {
	if all := []rune(text); len(all) > most {
		return string(all[:most-1]) + "…"
	}
	return text
}

// ntfy posts to the server, with the topic in the body.
func (s *sender) ntfy(ctx context.Context, m outbox.Message, token string) (*http.Request, error) {
	to := *s.url
	to.Path = strings.TrimSuffix(to.Path, path.Base(to.Path))
	p := published{Topic: path.Base(s.url.Path), Title: subject(s.site, m), Message: cut(body(m, s.now()), maxNtfy), Priority: 3, Click: link(m)}
	if urgent(m) {
		p.Priority, p.Tags = 5, []string{"warning"}
	}
	if p.Click != "" {
		p.Actions = []action{{"view", "Open", p.Click}}
	}
	r, text, err := post(ctx, &to, p)
	if over := len(text) - maxNtfyJSON; err == nil && over > 0 { // quotes have two bytes in JSON
		p.Message = cut(p.Message, len(p.Message)-over)
		r, _, err = post(ctx, &to, p)
	}
	if err == nil && token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return r, err
}

const telegramAPI = "https://api.telegram.org"

// maxTelegram bounds a text there, in units of UTF-16, as the server counts.
const maxTelegram = 4096

// chatted is a message of a Telegram bot (core.telegram.org/bots/api, sendMessage). Its text has no markup.
type chatted struct {
	Chat    string `json:"chat_id"`
	Text    string `json:"text"`
	Preview struct {
		Off bool `json:"is_disabled"`
	} `json:"link_preview_options"`
}

// telegram posts to the bot's URL, of which its token is a part.
func (s *sender) telegram(ctx context.Context, m outbox.Message, token string) (*http.Request, error) {
	at := link(m)
	if at != "" {
		at = "\n" + at
	}
	text := utf16.Encode([]rune(subject(s.site, m) + "\n" + body(m, s.now())))
	if most := maxTelegram - len(at); len(text) > most { // a half character at the end becomes U+FFFD
		text = text[:most]
	}
	c := chatted{Chat: s.Telegram, Text: string(utf16.Decode(text)) + at}
	c.Preview.Off = true
	r, _, err := post(ctx, s.url.JoinPath("bot"+token, "sendMessage"), c)
	return r, err
}

// isChat accepts a number, or a name with @.
func isChat(text string) bool {
	if name, ok := strings.CutPrefix(text, "@"); ok {
		return name != "" && len(name) <= 32 && strings.Trim(name, letters) == ""
	}
	_, err := strconv.ParseInt(text, 10, 64)
	return err == nil
}

// link is that of the first item that has one: urgent items are first.
func link(m outbox.Message) string {
	for _, i := range m.Items {
		if i.Link != "" {
			return i.Link
		}
	}
	return ""
}

func urgent(m outbox.Message) bool {
	return slices.ContainsFunc(m.Items, func(i outbox.Item) bool { return i.Urgent })
}

// hooked is the body of a webhook without one in the configuration.
type hooked struct {
	ID    string       `json:"id"`
	Site  string       `json:"site"`
	Title string       `json:"title"`
	Text  string       `json:"text"`
	Link  string       `json:"link,omitzero"`
	Items []hookedItem `json:"items"`
	More  int          `json:"more,omitzero"`
}

type hookedItem struct {
	ID    string    `json:"id"`
	Kind  string    `json:"kind"`
	About string    `json:"about"`
	From  string    `json:"from,omitzero"` // who asked for it; left out for the site itself
	Title string    `json:"title"`
	Text  string    `json:"text"`
	Link  string    `json:"link,omitzero"`
	Time  time.Time `json:"time"`
	Sure  bool      `json:"time_is_known"`
	Count int       `json:"count"`
}

// webhook posts a message, signed as in Standard Webhooks 1.0.
func (s *sender) webhook(ctx context.Context, m outbox.Message, secret string) (*http.Request, error) {
	of := hooked{m.ID, s.site, subject(s.site, m), body(m, s.now()), link(m), nil, m.More}
	kind := ""
	for n, i := range m.Items {
		_, about, _ := strings.Cut(i.Key, " ")
		of.Items = append(of.Items,
			hookedItem{i.ID, i.Kind, about, i.From, i.Title, i.Text, i.Link, i.At.UTC(), i.Sure, i.Count})
		if n == 0 {
			kind = i.Kind
		}
	}
	var content any = of
	if s.Body != "" {
		tree, err := parseBody(s.Body)
		if err != nil {
			return nil, err
		}
		at := ""
		if len(of.Items) > 0 {
			at = of.Items[0].Time.Format(time.RFC3339)
		}
		content = fill(tree, map[string]string{"title": of.Title, "text": cutRunes(of.Text, maxFilled), "kind": kind, "link": of.Link, "site": of.Site, "time": at, "id": of.ID})
	}
	r, text, err := post(ctx, s.url, content)
	if err != nil {
		return nil, err
	}
	now := strconv.FormatInt(s.now().Unix(), 10)
	r.Header.Set("Webhook-Id", m.ID)
	r.Header.Set("Webhook-Timestamp", now)
	if secret != "" {
		r.Header.Set("Webhook-Signature", "v1,"+sign(secret, m.ID, now, text))
	}
	return r, nil
}

// sign returns the signature of Standard Webhooks. A secret is base64 behind whsec_, or else its bytes.
func sign(secret, id, at string, body []byte) string {
	key := []byte(secret)
	if text, ok := strings.CutPrefix(secret, "whsec_"); ok {
		if raw, err := base64.StdEncoding.DecodeString(text); err == nil {
			key = raw
		}
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", id, at, body)
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// maxBody bounds the body of the configuration.
const maxBody = 4 << 10

// maxFilled bounds a text in such a body, in characters. Discord refuses messages of more than 2,000.
const maxFilled = 1500

var wordForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\{[a-z]*\}`) })

// known are the words that a body may have in braces.
var known = []string{"title", "text", "kind", "link", "site", "time", "id"}

// parseBody returns the JSON of a body, and refuses words that it does not know.
func parseBody(text string) (tree any, err error) {
	if len(text) > maxBody {
		return nil, fmt.Errorf("takes at most %d bytes", maxBody)
	}
	if err := json.Unmarshal([]byte(text), &tree); err != nil {
		return nil, errors.New("takes JSON with {title} and the like within its texts, " +
			`such as '{"text": "{title}: {text}"}', and this is none`)
	}
	var strange string
	walk(tree, func(s string) string {
		for _, w := range wordForm().FindAllString(s, -1) {
			if !slices.Contains(known, strings.Trim(w, "{}")) {
				strange = w
			}
		}
		return s
	})
	if strange != "" {
		return nil, fmt.Errorf("has %s; it takes {%s}", strange, strings.Join(known, "}, {"))
	}
	return tree, nil
}

// fill returns a tree with the words in its texts replaced. What they stand for stays within the text.
func fill(tree any, with map[string]string) any {
	return walk(tree, func(s string) string {
		return wordForm().ReplaceAllStringFunc(s, func(w string) string { return with[strings.Trim(w, "{}")] })
	})
}

// walk returns a JSON tree with each text in it, but no name, replaced.
func walk(tree any, text func(string) string) any {
	switch of := tree.(type) {
	case string:
		return text(of)
	case []any:
		all := make([]any, len(of))
		for i := range of {
			all[i] = walk(of[i], text)
		}
		return all
	case map[string]any:
		all := make(map[string]any, len(of))
		for k, v := range of {
			all[k] = walk(v, text)
		}
		return all
	}
	return tree
}
