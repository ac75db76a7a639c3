"""Text for tokenizers.py: what the small vocabularies are trained on, and the strings to encode."""
import random

TRAINING = """\
The loom stands by the window, and the weaver throws the shuttle before the light is gone.
She does not wait for the whole cloth; each row is ready as soon as its own threads are there.
It's the weaver's habit: she'll start early, they've said, and I'm sure you'd do it, won't you?
A tile is a small square of numbers. When a tile is written, the kernel that reads it may begin.
There were 12 looms in 1804, 144 in 1812 and 20736 a century later; 3.14159 is about 22/7.
Nothing is lost between two launches except the time that nobody asked for.
Der Weber sitzt am Webstuhl und wartet nicht auf das ganze Tuch; jede Reihe ist für sich fertig.
Über den Dächern hängt der Nebel, und größere Kacheln brauchen längere Fäden.
Le tisserand n'attend pas que l'étoffe soit finie : chaque rangée est prête à son heure.
L'été dernier, à Noël même, la garçonne a mangé une crêpe près du château.
El tejedor no espera a que termine la tela; cada fila está lista en su momento. ¿Qué pasó mañana?
O tecelão não espera o fim do pano; cada fileira fica pronta na sua hora, então começa a próxima.
Ткач не ждёт, пока будет готова вся ткань: каждый ряд готов в своё время.
Ο υφαντής δεν περιμένει ολόκληρο το ύφασμα· κάθε σειρά είναι έτοιμη στην ώρα της.
İstanbul'da dokumacı bütün kumaşı beklemez; ılık ışık altında her sıra hazırdır.
织工不等整块布织完，每一行好了就开始下一行。你好，世界！
織り手は布がすべて織り上がるのを待たない。一段ごとに次の仕事が始まる。こんにちは、世界。
직공은 천이 다 짜이기를 기다리지 않는다. 한 줄씩 준비된다. 안녕하세요 세계.
النساج لا ينتظر القماش كله، فكل صف جاهز في وقته. مرحبا بالعالم.
האורג אינו מחכה לכל הבד, כל שורה מוכנה בזמנה. שלום עולם.
बुनकर पूरे कपड़े की प्रतीक्षा नहीं करता, हर पंक्ति अपने समय पर तैयार होती है। नमस्ते दुनिया।
ช่างทอผ้าไม่รอให้ผ้าเสร็จทั้งผืน แต่ละแถวพร้อมในเวลาของมันเอง
for (int row = 0; row < rows; ++row) {
    if (tile[row] != nullptr) { sum += tile[row]->value * 2; }
}
def weave(threads, rows=64):
    return [thread for thread in threads if thread.is_ready()]  # nothing waits
#include <vector>
int main() { std::vector<int> v = {1, 2, 3}; return v.size() == 3 ? 0 : 1; }
<p class="note">See https://example.org/loom?tile=3&row=7#edge or mail weaver@example.org</p>
SELECT name, COUNT(*) FROM looms WHERE rows >= 100 GROUP BY name ORDER BY 2 DESC;
{"tile": [64, 64], "ready": true, "label": null, "share": 0.0625}
🧵 One thread, two threads 🧵🧵, three cheers 🎉 for the weaver 👩‍🔧 and for 🇩🇪 and 🇯🇵!
\tIndented with a tab,  two spaces,   three spaces,    four spaces.
""".split('\n')

PLAIN = [
    '', ' ', '  ', '   ', '        ', '\n', '\n\n', '\n\n\n', '\r', '\r\n', '\r\n\r\n', '\t', '\t\t',
    '\t \t', ' \n', '\n ', ' \n ', '  \n  \n  ', 'a', 'A', 'z', '0', '9', '!', '~', 'hello', 'Hello',
    'HELLO', 'Hello world', 'Hello, world!', ' Hello', '  Hello', '   Hello', 'Hello ', 'Hello  ',
    'Hello   ', ' Hello ', 'Hello  world', 'Hello   world', 'Hello\nworld', 'Hello\n world',
    'Hello \nworld', 'Hello\r\nworld', 'Hello\r\n\r\n  world', 'Hello\tworld', 'Hello\t\tworld\n',
    'The loom stands by the window.', 'The weaver throws the shuttle before the light is gone.',
    'one two three four five six seven eight nine ten',
    # Contractions, lower and upper, with the other apostrophe, where nothing precedes.
    "it's", "IT'S", "It'S", "we'll", "WE'LL", "We'Ll", "they've", "THEY'VE", "I'm", "I'M", "you'd",
    "YOU'D", "you're", "YOU'RE", "don't", "DON'T", "'s", "'S", "'ll", "'LL", "'tis", "'T", "''s",
    "' s", "l'été", "weaver’s", "WON’T", "'ſ", "'ſt", "rock'n'roll", "'re're", "'D'd",
    # Digits.
    '1', '12', '123', '1234', '12345', '123456', '1234567890', '1 2 3', '12 34', ' 123', '  123',
    '3.14159', '1,000,000', '1e-5', '0x1F', 'a1b2c3', '2024-01-31', '12:34:56', '½', '²³', 'x²',
    'Ⅷ', '٣٤٥', '१२३४', '１２３', '𝟘𝟙𝟚', '①②③', '12½', '100%', '$1.50', '€9,99', '1st 2nd',
    # Accents, composed and not, alone, stacked and out of order.
    'é', 'e\u0301', 'café', 'cafe\u0301', 'Ångström', 'A\u030angstro\u0308m', '\u0301', '\u0301a',
    'a\u0301\u0327', 'a\u0327\u0301', 'q\u0307\u0323', 'q\u0323\u0307', '\u1e9b\u0323', '\u212b',
    '\u2126', '\uac00', '\u1100\u1161', '\u1100\u1161\u11a8', 'ﬁ', 'ﬀ ﬃ', 'ÀÉÎÕÜ àéîõü', 'ñ', 'n\u0303',
    'Zalgo: Z\u0351\u036b\u0343a\u0323\u0332l\u0348g\u0357o\u035e', '\u0958', '\u0915\u093c', '\u0344',
    'a\u0898\u0316', 'a\u1ac1\u0316\u0301', '\U00011935\U00011930', '\ufb1d', '\u2adc',
    # Turkish, Greek, Cyrillic, long s, sharp s.
    'ıİiI', 'İstanbul', 'ılık ışık', 'ΑΣ', 'ας', 'Ελλάδα', 'Привет, мир', 'ПРИВЕТ', 'Straße', 'STRASSE',
    'ẞ', 'ſ', 'Ǆǅǆ',
    # Chinese, Japanese, Korean, Thai, Hindi, Arabic, Hebrew and marks of direction.
    '你好', '你好，世界！', '织工不等整块布织完。', '鬱蒼たる森', 'こんにちは', 'カタカナ ｶﾀｶﾅ', 'が か\u3099',
    '안녕하세요', '안녕 세계 123', 'สวัสดีครับ', 'नमस्ते दुनिया', 'क्षत्रिय', 'ক্ষুদ্র', 'தமிழ்',
    'مرحبا بالعالم', 'السَّلَامُ عَلَيْكُمْ', 'שלום עולם', 'שָׁלוֹם', '\u200fשלום\u200e abc', '\u202eabc\u202c',
    '\u2067א\u2069', 'ﷺ', 'ﻻ', '全角　空白', '\u3000', '𠮷野家', '𪜈',
    # Emoji, joined and with modifiers; flags, keycaps, tags.
    '🙂', '🙂🙂', ' 🙂', '👍🏽', '👩‍🔧', '👨‍👩‍👧‍👦', '🏳️‍🌈', '🇩🇪🇯🇵', '🇩', '1️⃣', '❤️', '❤', '☺\ufe0e',
    '🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f', 'a\u200db', 'a\u200cb', '🧵one🧵',
    # Controls, NUL, other spaces, byte order mark, ends of ranges, private use, no characters.
    '\x00', 'a\x00b', '\x00\x00', '\x01\x02\x03', '\x07bell', '\x1b[31mred\x1b[0m', '\x7f', '\x80\x9f',
    '\x85', 'a\x85b', '\xa0', 'a\xa0b', ' \xa0 ', '\u1680', '\u2003\u2003', '\u2028', '\u2029', '\u200b',
    'a\u200bb', '\u2060', '\ufeff', '\ufeffHello', '\xad', 'a\xadb', '\ud7ff', '\ue000', '\uf8ff',
    '\ufffd', '\ufffe', '\uffff', '\U00010000', '\U0001ffff', '\U000f0000', '\U0010ffff', '\x0b\x0c',
    'a\x1cb\x1db', '\u180e', '\u2800', '\ufff9a\ufffab\ufffb',
    # Letters, digits and marks that older versions of Unicode don't know.
    "\U0003224d's", '\U00031350\U0002ebf0', 'a\U00010d4e!', '\U00010d45\U0001e4f7', '!\U00011bf3',
    '\U00011f5a?', '\u0ece\u0ce3', '\u1c89\u1c8a', '\U0001ccf0\U00016ff4',
    # Code, addresses, punctuation.
    'for (int i = 0; i < n; ++i) { sum += a[i]; }', 'if (x == NULL)\n\treturn -1;\n', '    return x',
    '\treturn x\n\t\telse\n', 'def f(x):\n    return x * 2\n\n\nprint(f(3))\n', 'a&&b||!c', '<<<>>>',
    '/* comment */ // another', '#include <vector>\r\nint main() {}\r\n', 'x = {"a": [1, 2.5, null]}',
    '<p class="note">Tom &amp; Jerry</p>', 'https://example.org/loom?tile=3&row=7#edge',
    'weaver@example.org', 'C:\\Users\\weaver\\tile.txt', '/usr/local/bin:$PATH', '...', '…', '?!?!',
    '---', '—', '«quoted»', '“quoted”', '`code`', '***bold*** _it_', '$$\\frac{a}{b}$$', '(((', ')))',
    ' !', ' !!\n', '!\r\n\r\n', '.\n\n\n', ';\n  }\n}\n', 'snake_case_name', 'camelCaseName', 'ALL_CAPS',
    'kebab-case-name', 'a.b.c', '@user #tag', '100km/h', 'H₂O', 'E=mc²', 'a→b', '±1', '∑∫∂', '™®©',
    # The visible blank of Llama 2, names of bytes, what looks like special tokens.
    '▁', '▁▁', '▁Hello', 'Hello▁world', ' ▁ ', '<0x41>', '<0x0A><0xE2>', 'Ġ', 'ĠHello', 'Ċ', 'ÄĬ',
    '<s>', '</s>', '<unk>', '<s>Hello', 'Hello</s>', '<s> Hello </s>', ' <s>', '<s><s>', '<S>', '< s>',
    '<|endoftext|>', 'a<|endoftext|>b', ' <|endoftext|> ', '<|endoftext|><|endoftext|>',
    '<|endoftext', '|endoftext|>', '<|begin_of_text|>Hi', '<|eot_id|>', '<|start_header_id|>user',
    '<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n', '<|im_start|> <|im_end|>',
    '<think>\n\n</think>\n\nYes.', '<tool_call>{"a": 1}</tool_call>', '<|reserved_special_token_1|>',
    '<|reserved_special_token_12|>', '<repo_name>loom<filename>tile.h', '<|im_<|im_end|>',
    'unreachable', ' unreachable', 'unreachable unreachables', ' Tileweave', 'TileweaveTileweave',
    'é<|im_end|>\u0301', 'e<s>\u0301e', '\u0301<|endoftext|>\u0301',
]

# (unit, count): too long to keep the ids; their number and a hash are kept instead.
LONG = [('a', 100_000), ('ab', 50_000), ('weaver', 5_000), (' ', 20_000), ('\n', 20_000),
        ('é', 20_000), ('7', 20_000), ('你好', 10_000), ('🧵', 5_000), ('e\u0301', 10_000),
        ('The loom stands by the window. ', 1_000), ('<|im_end|>', 2_000), ('!?', 10_000)]

BLOCKS = [(0, 0x80), (0x20, 0x7f), (0x20, 0x7f), (0x80, 0x250), (0x300, 0x370), (0x370, 0x530),
          (0x590, 0x700), (0x900, 0x980), (0xe00, 0xe80), (0x1100, 0x1200), (0x2000, 0x2070),
          (0x3040, 0x3100), (0x4e00, 0x4f00), (0xac00, 0xad00), (0xff00, 0xffef), (0x1f300, 0x1f650),
          (0, 0xd800), (0xe000, 0x110000)]
SNIPPETS = [' ', '  ', '\n', '\r\n', '\t', "'s", "'LL", '12', '4096 ', ' the', 'weave', '▁', '<s>',
            '<|im_end|>', '<|endoftext|>', '<think>', 'e\u0301', '👩‍🔧']


def mixtures(seed, count):
    """Random text of all of Unicode, of blanks and of special tokens."""
    rng = random.Random(seed)
    strings = []
    for _ in range(count):
        text = ''
        for _ in range(rng.randrange(1, 9)):
            if rng.random() < 0.4:
                text += rng.choice(SNIPPETS)
            else:
                block = rng.choice(BLOCKS)
                points = [rng.randrange(*block) for _ in range(rng.randrange(1, 5))]
                text += ''.join(chr(c) for c in points if not 0xd800 <= c < 0xe000)
        strings.append(text)
    return strings


STRINGS = PLAIN + TRAINING[:-1] + mixtures(20260101, 60)
