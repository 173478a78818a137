package homeassistant

import (
	"fmt"
	"net/url"
	"os"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

const deploy = "../../../deploy/homeassistant/"

func read(t *testing.T, name string) map[string]any {
	t.Helper()
	text, err := os.ReadFile(deploy + name)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := yaml.UnmarshalWithOptions(text, &out, yaml.Strict()); err != nil {
		t.Fatal(name, err)
	}
	return out
}

// check is one rule of a schema: why a value is refused, "" for taken.
type check func(v any) string

func is[T any](v any) string {
	if _, ok := v.(T); !ok {
		return fmt.Sprintf("%v is a %T", v, v)
	}
	return ""
}

func match(pattern string) check {
	re := regexp.MustCompile(pattern)
	return func(v any) string {
		if s, ok := v.(string); !ok || !re.MatchString(s) {
			return fmt.Sprintf("%v does not match %s", v, pattern)
		}
		return ""
	}
}

func in(words ...string) check {
	return func(v any) string {
		if s, ok := v.(string); !ok || !slices.Contains(words, s) {
			return fmt.Sprintf("%v is not one of %v", v, words)
		}
		return ""
	}
}

func list(of check) check {
	return func(v any) string {
		all, ok := v.([]any)
		if !ok {
			return fmt.Sprintf("%v is no list", v)
		}
		for _, one := range all {
			if why := of(one); why != "" {
				return why
			}
		}
		return ""
	}
}

func each(key, value check) check {
	return func(v any) string {
		all, ok := v.(map[string]any)
		if !ok {
			return fmt.Sprintf("%v is no mapping", v)
		}
		for k, one := range all {
			if why := key(k) + value(one); why != "" {
				return k + ": " + why
			}
		}
		return ""
	}
}

func port(v any) string {
	if n := reflect.ValueOf(v); v == nil || n.CanUint() && n.Uint() > 0 && n.Uint() < 65536 {
		return ""
	}
	return fmt.Sprintf("%v is no port", v)
}

func isURL(v any) string {
	s, _ := v.(string)
	if u, err := url.Parse(s); err != nil || u.Host == "" {
		return fmt.Sprintf("%v is no URL", v)
	}
	return ""
}

// option is the type of an option (supervisor/apps/options.py: RE_SCHEMA_ELEMENT).
var option = match(`^(?:|bool|email|url|port|device(?:\((?:subsystem=[a-z]+)\))?|(?:str|password|int|float)(?:\([-\d.]*,[-\d.]*\))?|match\(.*\)|list\(.+\))\??$`)

// appSchema is that of an app's config.yaml, transcribed from home-assistant/supervisor at 090ef31e (2026-08-21),
// supervisor/apps/validate.py: _SCHEMA_APP_CONFIG, as far as an app that is not yet deprecated uses it. The Supervisor
// drops keys that it does not know; here they are mistakes.
var appSchema = map[string]check{
	"name": is[string], "version": is[string], "slug": match(`^[-_.A-Za-z0-9]+$`), "description": is[string],
	"arch":    list(in("aarch64", "amd64")), // ARCH_ALL
	"machine": list(match(`^!?[a-z0-9-]+$`)), "url": isURL,
	"startup": in("initialize", "system", "services", "application", "once"), "boot": in("auto", "manual", "manual_only"),
	"init":  is[bool],
	"stage": in("stable", "experimental", "deprecated"),
	"ports": each(match(`^\d+(?:/tcp|/udp)?$`), port), "ports_description": each(match(`^\d+(?:/tcp|/udp)?$`), is[string]),
	"watchdog": match(`^(?:https?|\[PROTO:\w+\]|tcp):\/\/\[HOST\]:(\[PORT:\d+\]|\d+).*$`),
	"webui":    match(`^(?:https?|\[PROTO:\w+\]):\/\/\[HOST\]:\[PORT:\d+\].*$`),
	"ingress":  is[bool], "ingress_port": port, "ingress_entry": is[string], "ingress_stream": is[bool],
	"panel_icon": is[string], "panel_title": is[string], "panel_admin": is[bool], "homeassistant": is[string],
	"host_network": is[bool], "host_dbus": is[bool], "devices": list(match(`^/dev/[\w./-]+$`)), "udev": is[bool], "tmpfs": is[bool],
	"map": list(func(v any) string {
		m, ok := v.(map[string]any)
		if !ok || m["type"] == nil {
			return fmt.Sprintf("%v has no type", v)
		}
		for k, one := range m {
			rule := map[string]check{
				"type": in("data", "config", "ssl", "local_apps", "backup", "share", "media", "homeassistant_config", "all_app_configs", "app_config",
					"addons", "all_addon_configs", "addon_config"),
				"read_only": is[bool], "path": is[string],
			}[k]
			if rule == nil {
				return k + " is no key of map"
			}
			if why := rule(one); why != "" {
				return why
			}
		}
		return ""
	}),
	"environment": each(match(`^\w*$`), is[string]), "apparmor": is[bool], "full_access": is[bool], "video": is[bool], "gpio": is[bool],
	"usb": is[bool], "uart": is[bool], "devicetree": is[bool], "kernel_modules": is[bool], "realtime": is[bool],
	"hassio_api": is[bool], "hassio_role": in("default", "homeassistant", "backup", "manager", "admin"),
	"homeassistant_api": is[bool],
	"stdin":             is[bool], "auth_api": is[bool],
	"services":       list(match(`^(?P<service>mqtt|mysql):(?P<rights>provide|want|need)$`)), // RE_SERVICE
	"discovery":      list(is[string]),
	"backup_exclude": list(is[string]), "backup": in("hot", "cold"),
	"options": is[map[string]any], "schema": each(match(`^\w+$`), option),
	"image": match(`^[a-z0-9{][a-z0-9./\-_{}]*$`), "timeout": port, "breaking_versions": list(is[string]),
}

func lint(config map[string]any) (wrong []string) {
	for _, key := range []string{"name", "version", "slug", "description", "arch"} {
		if config[key] == nil {
			wrong = append(wrong, key+" is missing")
		}
	}
	for key, value := range config {
		rule := appSchema[key]
		if rule == nil {
			wrong = append(wrong, "there is no key "+key)
		} else if why := rule(value); why != "" {
			wrong = append(wrong, key+": "+why)
		}
	}
	return wrong
}

// TestAppConfig: Home Assistant takes the app, and the app asks it for no more than it uses.
func TestAppConfig(t *testing.T) {
	config := read(t, "agentsite/config.yaml")
	for _, why := range lint(config) {
		t.Error(why)
	}
	for _, key := range []string{"full_access", "host_network", "privileged", "docker_api", "hassio_api", "homeassistant_api", "auth_api", "host_dbus"} {
		if config[key] != nil {
			t.Errorf("the app asks for %s", key)
		}
	}
	schema := config["schema"].(map[string]any)
	said := read(t, "agentsite/translations/en.yaml")
	for key := range schema {
		if said["configuration"].(map[string]any)[key] == nil {
			t.Errorf("the option %s has no name", key)
		}
	}
	for key := range config["ports"].(map[string]any) {
		if said["network"].(map[string]any)[key] == nil {
			t.Errorf("the port %s has no name", key)
		}
	}
	if !strings.HasSuffix(config["watchdog"].(string), fmt.Sprintf("[PORT:%v]/healthz", config["ingress_port"])) {
		t.Error("the watchdog asks at another port than the Supervisor reaches", config["watchdog"])
	}
	pattern, _ := strings.CutPrefix(schema["owner"].(string), "match(")
	if !regexp.MustCompile(strings.TrimSuffix(pattern, ")?")).MatchString(owner) {
		t.Error("an owner's key is refused", pattern)
	}
	repository := read(t, "repository.yaml") // supervisor/store/validate.py: SCHEMA_REPOSITORY_CONFIG
	if repository["name"] == nil {
		t.Error("the repository has no name")
	}
	for key := range repository {
		if !slices.Contains([]string{"name", "url", "maintainer"}, key) {
			t.Errorf("a repository has no %s", key)
		}
	}
}

// TestLint: the schema refuses what the Supervisor refuses.
func TestLint(t *testing.T) {
	for key, value := range map[string]any{
		"slug": "a b", "arch": []any{"armv6"}, "startup": "early", "watchdog": "http://localhost/",
		"services": []any{"mqtt"}, "ingress_port": uint64(70000),
		"schema": map[string]any{"owner": "text"}, "map": []any{map[string]any{"type": "addon_configs"}},
		"ports": map[string]any{"8474": "8474"},
		"gpio":  "true", "privilege": true, "devices": []any{"gpiochip0"},
	} {
		config := read(t, "agentsite/config.yaml")
		config[key] = value
		if len(lint(config)) != 1 {
			t.Errorf("%s: %v: %v", key, value, lint(config))
		}
	}
}

// TestDockerfile: the image copies the files that build makes, and runs the app.
func TestDockerfile(t *testing.T) {
	text, err := os.ReadFile(deploy + "agentsite/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	build, err := os.ReadFile(deploy + "build")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(string(text), "\n") {
		if from, ok := strings.CutPrefix(line, "COPY "); ok && !strings.HasPrefix(from, "--from=") {
			name, _, _ := strings.Cut(from, " ")
			if want := strings.ReplaceAll(name, "${BUILD_ARCH}", "$arch"); !strings.Contains(string(build), path.Join("agentsite", want)) {
				t.Errorf("build makes no %s", want)
			}
		}
	}
	if !strings.Contains(string(text), `CMD ["/agentsite", "run", "--home-assistant"]`) {
		t.Error("the image runs something else")
	}
}
