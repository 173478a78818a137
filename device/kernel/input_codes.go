package kernel

// The codes of include/uapi/linux/input-event-codes.h and the names of their points.
// A code that is not here is named by its number.

// keyNames are EV_KEY: a key as KEY_ENTER is "enter", a button keeps its btn_.
var keyNames = map[uint16]string{
	1: "esc", 2: "1", 3: "2", 4: "3", 5: "4", 6: "5", 7: "6", 8: "7", 9: "8", 10: "9", 11: "0", 12: "minus",
	13: "equal", 14: "backspace", 15: "tab", 16: "q", 17: "w", 18: "e", 19: "r", 20: "t", 21: "y", 22: "u", 23: "i",
	24: "o", 25: "p", 26: "leftbrace", 27: "rightbrace", 28: "enter", 29: "leftctrl", 30: "a", 31: "s", 32: "d",
	33: "f", 34: "g", 35: "h", 36: "j", 37: "k", 38: "l", 39: "semicolon", 40: "apostrophe", 41: "grave",
	42: "leftshift", 43: "backslash", 44: "z", 45: "x", 46: "c", 47: "v", 48: "b", 49: "n", 50: "m", 51: "comma",
	52: "dot", 53: "slash", 54: "rightshift", 55: "kpasterisk", 56: "leftalt", 57: "space", 58: "capslock", 59: "f1",
	60: "f2", 61: "f3", 62: "f4", 63: "f5", 64: "f6", 65: "f7", 66: "f8", 67: "f9", 68: "f10", 69: "numlock",
	70: "scrolllock", 71: "kp7", 72: "kp8", 73: "kp9", 74: "kpminus", 75: "kp4", 76: "kp5", 77: "kp6", 78: "kpplus",
	79: "kp1", 80: "kp2", 81: "kp3", 82: "kp0", 83: "kpdot", 85: "zenkakuhankaku", 86: "102nd", 87: "f11", 88: "f12",
	89: "ro", 90: "katakana", 91: "hiragana", 92: "henkan", 93: "katakanahiragana", 94: "muhenkan", 95: "kpjpcomma",
	96: "kpenter", 97: "rightctrl", 98: "kpslash", 99: "sysrq", 100: "rightalt", 101: "linefeed", 102: "home",
	103: "up", 104: "pageup", 105: "left", 106: "right", 107: "end", 108: "down", 109: "pagedown", 110: "insert",
	111: "delete", 112: "macro", 113: "mute", 114: "volumedown", 115: "volumeup", 116: "power", 117: "kpequal",
	118: "kpplusminus", 119: "pause", 120: "scale", 121: "kpcomma", 122: "hangeul", 123: "hanja", 124: "yen",
	125: "leftmeta", 126: "rightmeta", 127: "compose", 128: "stop", 129: "again", 130: "props", 131: "undo",
	132: "front", 133: "copy", 134: "open", 135: "paste", 136: "find", 137: "cut", 138: "help", 139: "menu",
	140: "calc", 141: "setup", 142: "sleep", 143: "wakeup", 144: "file", 145: "sendfile", 146: "deletefile",
	147: "xfer", 148: "prog1", 149: "prog2", 150: "www", 151: "msdos", 152: "coffee", 153: "rotate_display",
	154: "cyclewindows", 155: "mail", 156: "bookmarks", 157: "computer", 158: "back", 159: "forward", 160: "closecd",
	161: "ejectcd", 162: "ejectclosecd", 163: "nextsong", 164: "playpause", 165: "previoussong", 166: "stopcd",
	167: "record", 168: "rewind", 169: "phone", 170: "iso", 171: "config", 172: "homepage", 173: "refresh", 174: "exit",
	175: "move", 176: "edit", 177: "scrollup", 178: "scrolldown", 179: "kpleftparen", 180: "kprightparen", 181: "new",
	182: "redo", 183: "f13", 184: "f14", 185: "f15", 186: "f16", 187: "f17", 188: "f18", 189: "f19", 190: "f20",
	191: "f21", 192: "f22", 193: "f23", 194: "f24", 200: "playcd", 201: "pausecd", 202: "prog3", 203: "prog4",
	204: "all_applications", 205: "suspend", 206: "close", 207: "play", 208: "fastforward", 209: "bassboost",
	210: "print", 211: "hp", 212: "camera", 213: "sound", 214: "question", 215: "email", 216: "chat", 217: "search",
	218: "connect", 219: "finance", 220: "sport", 221: "shop", 222: "alterase", 223: "cancel", 224: "brightnessdown",
	225: "brightnessup", 226: "media", 227: "switchvideomode", 228: "kbdillumtoggle", 229: "kbdillumdown",
	230: "kbdillumup", 231: "send", 232: "reply", 233: "forwardmail", 234: "save", 235: "documents", 236: "battery",
	237: "bluetooth", 238: "wlan", 239: "uwb", 240: "unknown", 241: "video_next", 242: "video_prev",
	243: "brightness_cycle", 244: "brightness_auto", 245: "display_off", 246: "wwan", 247: "rfkill", 248: "micmute",
	256: "btn_0", 257: "btn_1", 258: "btn_2", 259: "btn_3", 260: "btn_4", 261: "btn_5", 262: "btn_6", 263: "btn_7",
	264: "btn_8", 265: "btn_9", 272: "btn_left", 273: "btn_right", 274: "btn_middle", 275: "btn_side", 276: "btn_extra",
	277: "btn_forward", 278: "btn_back", 279: "btn_task", 304: "btn_south", 305: "btn_east", 306: "btn_c",
	307: "btn_north", 308: "btn_west", 309: "btn_z", 310: "btn_tl", 311: "btn_tr", 312: "btn_tl2", 313: "btn_tr2",
	314: "btn_select", 315: "btn_start", 316: "btn_mode", 317: "btn_thumbl", 318: "btn_thumbr",
}

// relNames are EV_REL.
var relNames = map[uint16]string{
	0: "x", 1: "y", 2: "z", 3: "rx", 4: "ry", 5: "rz", 6: "hwheel", 7: "dial", 8: "wheel", 9: "misc",
	11: "wheel_hi_res", 12: "hwheel_hi_res",
}

// switchNames are EV_SW.
var switchNames = map[uint16]string{
	0: "lid", 1: "tablet_mode", 2: "headphone_insert", 3: "rfkill_all", 4: "microphone_insert", 5: "dock",
	6: "lineout_insert", 7: "jack_physical_insert", 8: "videoout_insert", 9: "camera_lens_cover", 10: "keypad_slide",
	11: "front_proximity", 12: "rotate_lock", 13: "linein_insert", 14: "mute_device", 15: "pen_inserted",
	16: "machine_cover",
}
