//! What makes an order none: it is taken back, asked, reported, put under a condition, or gives nothing to store.
//!
//! To store what nobody asked for is far worse than not to understand, so every table here may well refuse too much. Only what
//! stands outside of quotes is looked at. Every pattern holds for simplified and traditional characters.

use std::sync::LazyLock;

use regex::Regex;

use super::{in_both_scripts, pattern, sentences, table::Kind};

/// What speaks against storing something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doubt {
    /// It is no order.
    NoOrder,
    /// It is more than one.
    Several,
}

/// Where a new clause begins.
const BOUNDARY: &str = r"(?:^|[,.!?;:…—–(\n，。！？；：（]|\s-+)\s*";

/// Words that lead over to what is really meant.
const LEAD: &str = r"(?:(?:oh|ah|um+|uh|hm+|er+|but|and|or|well|sorry|ok|okay|hey|please|lisa|yes|haha|lol|ha|so|then|you know what|哦|噢|啊|呃|嗯|唉|哎呀?|哈哈|但是?|不过|那|我看|我想|我|你|请|其实)[\s,.!…，。！]*)*";

/// Taken back, at the beginning of a clause: in prose as well.
const TAKEN_BACK: &[&str] = &[
    r"no[\s,.!…—–-]*(?:$|(?:wait|don't|do not|stop|never ?mind|scratch|forget|sorry|actually|leave|keep|cancel|not that|please|thanks|thank you|hold on|i )\b)",
    r"actually[\s,.!…—–-]*(?:$|(?:no|nope|nah|don't|do not|not|never ?mind|leave|keep|stop|forget|scratch|cancel|wait|i changed|i'd rather|let's not)\b)",
    r"(?:please )?(?:don't|do not)(?:[\s\p{P}]*$| (?:do|add|store|write|save|change|set|record|bother|really|actually|you|dare|listen|make|call|rename|become|turn|touch|apply|note|put|even)\b)",
    r"(?:never ?mind|scratch (?:that|it|this)|strike that|forget (?:it|that|this|i|what i|about it)|cancel|undo|disregard|ignore (?:that|this|me|it|what)|leave it|keep it)\b",
    r"(?:just |only )?(?:kidding|joking|jk|a joke)\b|j/k|i(?:'m| am| was) (?:just |only )?(?:kidding|joking)|(?:it|that|this)(?:'s| is| was) (?:just |only )?a (?:joke|test|mistake)|april fools?",
    r"(?:on )?(?:second thoughts?|reflection)\b|i(?:'ve)? (?:just )?changed my mind|i take (?:it|that|this) back|take that back|i (?:didn't|did not|don't|do not) (?:really )?mean|(?:better|rather|maybe|perhaps) not\b|let's not\b|not really[\s\p{P}]*$|not[\s\p{P}]*$|(?:nope|nah|psych)\b",
    r"(?:还是)?算了|还是(?:不|别|算|保持)|不要(?:了|改|变|写|记|这样|这么|真|当真)|别(?:了|改|变|写|记|这样|这么|真|当真|听)|不(?:用|必|改|变|写|记|学|加)了|先(?:不|别)|(?:我)?(?:是)?(?:跟你|和你|只是|就是)?(?:在)?开(?:个)?玩笑|开(?:个)?玩笑|開(?:個)?玩笑|说着玩|逗你|骗你|当我没说|取消|撤销|撤回|收回|(?:我)?反悔|(?:我)?改(?:变)?主意|保持(?:原样|不变|现状)|千万(?:别|不要)|别[\s\p{P}]*$|不[\s\p{P}]+|不[\s\p{P}]*$|忘了(?:它|吧|这)|才怪",
];

/// Taken back or corrected, at the beginning of a clause; a diary may well say such a thing.
const CORRECTED: &[&str] = &[
    r"(?:actually|wait|hold on|hang on|stop|sorry|oops|whoops|my (?:mistake|bad)|i mean|i meant|rather|make (?:it|that)|or (?:not|maybe|don't|rather|whatever)|not (?:now|yet|today|that)|unless|if|in case|provided|no)\b",
    r"不对|不是|不行|不好|等等|等一下|等下|等会|慢着|我是说|说错|口误|搞错|弄错|抱歉|对不起|没事了|或者|要不|如果|要是|除非|假如|万一|并不|其实",
];

/// Taken back so clearly, or at the very end, that nothing need mark a new clause.
const TAKEN_BACK_LAST: &str = r"\b(?:no,? wait|actually,? no|scratch that|on second thoughts?|just kidding)\b|(?:\b(?:never ?mind|(?:just|only) (?:kidding|joking)|scratch that|no,? wait|no,? don't|don't|do not|or not|but don't|forget it|jk)|(?:还是)?算了|(?:开|開)玩笑的?|还是别|还是不要|不要了|别了|当我没说|才怪|不对|(?:逗|骗)你的?|说着玩的?|等等|等一下|改主意|(?:还是)?不(?:改|变|写|学)了?)[吧啊呀哈\s\p{P}]*$";

/// A condition, a time to come, or a choice: nothing to do now.
const NOT_NOW: &str = r"\b(?:if|unless|whenever|in case|provided|as soon as) (?:you|i|it|we|they|he|she|that|this|possible|necessary|needed|so|not|the|my|there|and)\b|\b(?:when|once|after|before|until) (?:i|we) (?:say|tell|ask|want|am|come|get|give)\b|\b(?:tomorrow|later|someday|one day|next (?:week|month|year|time)|some other time|in a (?:minute|moment|while)|tonight)[\s\p{P}]*$|\band (?:you'll|you will|i'll|i will|see)\b|\bbut (?:i|don't|do not|only if|not (?:now|yet|today|really|right now))\b|\bor (?:is|are|am|was|were|do|does|don't|not|else|would|should|what|can|could|will|a|an|the|something|maybe|whatever)\b|的话[\s\p{P}]*$|^(?:如果|假如|要是)|还是.{1,12}(?:[?？]|呢|好)|(?:会|该)?(?:怎么样|怎样|如何|怎么办)[\s\p{P}]*$|或者";

/// Said by somebody else, or talked about.
const REPORTED: &str = r"[,.;:!—–-]\s*(?:(?:he|she|they|it|i|we|you|someone|somebody|everyone|people|(?:my|the|his|her|our|a) \w+|[a-z]+) )(?:once |just |always |never |also |had |have |has |was |were |keeps? )?(?:said|says|saying|say|told|tells|asked|asks|wrote|writes|shouted|cried|whispered|yelled|replied|ordered|demanded|begged|heard|quoted)\b|[,.;:!—–-]\s*(?:said|says|asked|shouted|cried|whispered|yelled|replied) \w+|\bsaid (?:the|a|my|he|she|they)\b|\b(?:is|was|are|were|would be|sounds? like) (?:what|how|(?:just |only )?(?:a|an|the|my|his|her) (?:\w+ )?(?:phrase|sentence|quote|quotation|line|command|order|song|joke|test|title|example|idiom|saying|headline))\b|[，,。；;](?:他|她|它|他们|她们|有人|人们|别人|大家|书上|书里|我|我们|老师|我?[爸妈哥姐弟妹]+|朋友|[^，。,;；]{1,4})(?:总是|常常|经常|曾经?|就|都|又|也)?(?:说|问|告诉|写道|喊|讲|叫道|听说)|这(?:句|种|几|个)(?:话|个?字|命令|说法)|是(?:一句|我书里|书里|电影|歌词|台词|谁说|他说|她说|什么意思|什么感觉)|的意思";

/// An order in the order: `… and your identity to …`.
const SEVERAL: &[&str] = &[
    r"(?:\b(?:and|then|also|plus|but)\b|[,.;&+!\n，。；])\s*(?:(?:and|then|also|please|now|plus|next)[\s,]+)*(?:(?:set|change|update|switch|make|rewrite|edit)\s+)?(?:your\s+(?:own\s+|new\s+)?)?(?:name|identity|purpose|mission|personality)(?:\s+(?:to|into|as|is|be)\b|\s*[:：=])",
    r"(?:\b(?:and|then|also|plus|but)\b|[,.;&+!\n，。；])\s*(?:(?:and|then|also|please|now|plus|next)[\s,]+)*(?:(?:change|set|update|switch|rename|rewrite|edit|delete|erase|wipe|forget)\s+your\b|(?:call|name|rename|turn|transform|change|make|delete|erase)\s+yourself\b|become\s+(?:an?|the|someone)\b|(?:add|adopt)\s+(?:an?\s+)?(?:new\s+)?(?:value|opinion|wish|desire|goal)\b|(?:write|note|put|add)\b.{0,20}\b(?:journal|diary)\b)",
    r"[,.;，。；、\s并和再还且也](?:并且|并|而且|再|然后|也|还|还有|同时|和|请|接着|\s)*[把将](?:你|您|自己).{0,6}(?:改|换|变|设|取|删|写|叫)",
    r"[,.;，。；、\s并和再还且也](?:并且|并|而且|再|然后|也|还|还有|同时|和|请|接着|\s)*(?:你|您)?(?:自己)?的?(?:身份|名字|使命|目的|人设)(?:也|就|都)?(?:改|换|变|设|取|叫|是|为|[:：])",
    r"[,.;，。；、\s并再还且也](?:并且|并|而且|再|然后|也|还|同时|请|接着|\s)*(?:变成|成为|改名|更名|写日记|(?:在|往)(?:你的?)?日记|添加一?个)",
];

/// What may come before an order and makes it none: a permission, an ability, the past.
const NO_ORDER_BEFORE: &str = r"\b(?:you (?:should|may|can|must|shall)|tell me|let me ask)\b|刚才|刚刚|昨天|上次|曾经|我问你|告诉我|(?:will|would|can|could) you[\s,]+(?:please |just |now |then )*(?:become|(?:turn|transform|morph|change) into)\b|would you[\s,]+(?:please |just |now |then )*(?:call|name) yourself\b";

/// What may come before an order and makes it a statement: `你成为……`, `你在日记里写……`.
const STATED_BEFORE: &str =
    r"[你您](?:就|再|现在|以后)*(?:变|变身|转变|化身|改)?(?:成为|成|为)+ *$|[你您][在往到].{0,6}日";

/// What makes a statement an order after all.
const ORDERED_BEFORE: &str = r"请|麻烦|拜托|劳驾";

/// How an order is asked for politely, before and behind it.
const POLITE_BEFORE: &str =
    r"\b(?:can|could|would|will) you\b|\blet's\b|能|可以|可不可以|可否|麻烦|介意|i(?:'d)? ask you";
const POLITE_AFTER: &str = r"(?:\b(?:please|ok|okay|right|(?:would|will|could|can) you)|(?:好|可以|行|能|成)(?:吗|么)|好不好|行不行|可不可以|能不能|好吧|吧)[\s\p{P}]*$";

/// A question by its last word.
const ASKED_LAST: &str =
    r"(?:吗|么|呢|没有|没|与否|是否|(?:什么|谁|啥|哪里|哪个|怎么样|怎样|如何|多少|几个))[\s\p{P}]*$";

/// What is nothing to become or to hold.
const PLACEHOLDER: &str = r"^(?:(?:something|anything|nothing|everything|whatever|whoever|whichever|somebody|anyone|anybody|everyone|none|no one|tomorrow|later|soon|now|again|it|that|this|one|the same|a different one|another(?: one)?|someone(?: (?:else|new|different|better|nicer|cooler|other))?[\s\p{P}]*$|unknown|undefined|null|blank|empty|tbd|n/a|or|as (?:it|you|is|before)|back|if|when|why|where|whether)(?:$|\W)|what(?:'s)?\b|an? (?:dear|bit|little|lot|part of|good (?:girl|boy|sport)|sport|darling|lamb|doll|guest|witness|secret|mystery|joke)\b)|^(?:什么|啥|随便|任何|别的|别人|其他|其它|某|哪|谁|那样|这样|那个样|这个样|原来|原样|以前|刚才|刚刚|没有|空的?$|不$|不知道|无所谓|现实|可能|习惯|都行|都可以)";

/// A sentence about what comes before it, where no relative clause could hold it.
const SAID_OF_IT: &str = r"^[^,.:;\n]*?\b(?:would|is|was|isn't|wasn't|wouldn't|sounds|seems|means|makes|will|won't|doesn't|cannot|can't)\b";
const RELATIVE: &str =
    r"^[^,.:;\n]*?\b(?:who|that|which|whose|where|whom|when|because|since|what|how|why|you|i)\b";

/// A sentence about what comes before it in Chinese.
const SAID_OF_IT_CHINESE: &str = r"需要|很难|很可怕|很奇怪|很好笑|不容易|不可能|是不|是一(?:件|种)|是件|真好|真难|真的|太难|太可怕|会怎|要花|(?:很久|好久|多年)了?$|我很|让我|了$|的时候";

/// Whether something speaks against storing what an order of this kind gives: `before` is the text up to it.
pub(super) fn against(kind: Kind, before: &str, it: &str, whole: &str) -> Option<Doubt> {
    static PROSE: LazyLock<Regex> = LazyLock::new(|| clauses(&[TAKEN_BACK]));
    static OTHER: LazyLock<Regex> = LazyLock::new(|| clauses(&[TAKEN_BACK, CORRECTED]));
    static LAST: LazyLock<Regex> = LazyLock::new(|| compiled(TAKEN_BACK_LAST));
    static SEVERAL_ORDERS: LazyLock<Regex> = LazyLock::new(|| compiled(&SEVERAL.join("|")));
    static NO_ORDER: LazyLock<Regex> = LazyLock::new(|| compiled(NO_ORDER_BEFORE));
    static STATED: LazyLock<Regex> = LazyLock::new(|| compiled(STATED_BEFORE));
    static ORDERED: LazyLock<Regex> = LazyLock::new(|| compiled(ORDERED_BEFORE));
    static REPORTS: LazyLock<Regex> = LazyLock::new(|| compiled(REPORTED));
    static UNFIT: LazyLock<Regex> = LazyLock::new(|| compiled(&[NOT_NOW, REPORTED].join("|")));

    let no_order = Some(Doubt::NoOrder);
    if NO_ORDER.is_match(before) || (STATED.is_match(before) && !ORDERED.is_match(before)) {
        return no_order;
    }
    if kind == Kind::Journal {
        return (PROSE.is_match(it) || is_pointing(it)).then_some(Doubt::NoOrder);
    }
    // What she holds may begin with `no` and `don't`, so its first clause takes nothing back.
    let is_held = matches!(kind, Kind::AddValue | Kind::AddOpinion);
    let taken_back =
        |found: regex::Match<'_>| !is_held || it.get(..found.start()).is_some_and(|it| !it.is_empty());
    if OTHER.find_iter(it).any(taken_back) || LAST.is_match(it) {
        return no_order;
    }
    if SEVERAL_ORDERS.is_match(it) {
        return Some(Doubt::Several);
    }
    // What she holds may well begin with `if`.
    let unfit = if is_held { REPORTS.is_match(it) } else { UNFIT.is_match(it) };
    (is_asked(before, it, whole) || unfit || is_empty(kind, it)).then_some(Doubt::NoOrder)
}

/// Whether an order is really a question: one asked politely is none, as long as nothing else is asked.
fn is_asked(before: &str, it: &str, whole: &str) -> bool {
    static BEFORE: LazyLock<Regex> = LazyLock::new(|| compiled(POLITE_BEFORE));
    static AFTER: LazyLock<Regex> = LazyLock::new(|| compiled(POLITE_AFTER));
    static LAST: LazyLock<Regex> = LazyLock::new(|| compiled(ASKED_LAST));
    static ABLE: LazyLock<Regex> = LazyLock::new(|| compiled("可以|能"));
    static ABLE_ASKED: LazyLock<Regex> =
        LazyLock::new(|| compiled(r"[?？]|吗|么|吧|能不能|可不可以|能否|可否|请|麻烦|希望|想"));
    let said = whole.trim_end_matches(|c: char| c.is_whitespace() || is_mark(c));
    let asks_in_between = said.contains(['?', '？']);
    let asks = LAST.is_match(it) || whole.contains(['?', '？']);
    let polite = BEFORE.is_match(before) || AFTER.is_match(it);
    // `可以……` alone says what may be, and asks for nothing.
    let only_able = ABLE.is_match(before) && !ABLE_ASKED.is_match(whole);
    asks_in_between || (asks && !polite) || a_not_a(before, it) || only_able
}

/// Whether it is asked like `是不是` and `有没有`: the same character twice, around a negation. Two such questions are courtesies.
fn a_not_a(before: &str, it: &str) -> bool {
    const POLITE: [&str; 6] = ["能不能", "可不可", "好不好", "行不行", "能不能够", "方便不方便"];
    let text = [before, it].concat();
    let letters: Vec<char> = text.chars().collect();
    let asked = letters.windows(3).any(|three| match three {
        [first, '不' | '没' | '沒', last] => {
            first == last && !POLITE.contains(&three.iter().collect::<String>().as_str())
        }
        _ => false,
    });
    asked || text.contains("是否") || text.contains("可否")
}

/// Whether what is given says nothing, or says something of itself.
fn is_empty(kind: Kind, it: &str) -> bool {
    static NOTHING: LazyLock<Regex> = LazyLock::new(|| compiled(PLACEHOLDER));
    static OF_IT: LazyLock<Regex> = LazyLock::new(|| compiled(SAID_OF_IT));
    static IN_IT: LazyLock<Regex> = LazyLock::new(|| compiled(RELATIVE));
    static OF_IT_CHINESE: LazyLock<Regex> = LazyLock::new(|| compiled(SAID_OF_IT_CHINESE));
    let bare = |text: &str| text.trim_matches(|c: char| !c.is_alphanumeric()).len();
    let it = it.trim();
    let becomes = matches!(kind, Kind::SetIdentity | Kind::SetPurpose);
    let is_held = matches!(kind, Kind::AddValue | Kind::AddOpinion);
    let of_it = || OF_IT.is_match(it) && !IN_IT.is_match(it) || OF_IT_CHINESE.is_match(it);
    // `nothing is as good as tea` is an opinion, `nothing` is none.
    let nothing = NOTHING.find(it).is_some_and(|found| !is_held || bare(found.as_str()) == bare(it));
    nothing || (becomes && of_it())
}

/// Whether a diary is to hold what is only pointed at: `把这件事写进日记`.
fn is_pointing(it: &str) -> bool {
    static POINTING: LazyLock<Regex> = LazyLock::new(|| {
        compiled(
            r"^(?:(?:no|or|nope|don't|do not|not)[\s,.!]*(?:no|not|wait|don't|do not|now|yet|please)?|something.*|anything.*|nothing|whatever.*|every ?(?:day|night|thing)|(?:more|less) \w+|a lot|often|down)[\s\p{P}]*$|^(?:(?:这|那)(?:件|个|些|句|段)?(?:事情?|话|东西|内容)?|它|他|她|一切|全部|所有.*|什么.*|点?什么|些?什么|随便.*|(?:我|你|我们|刚才|刚刚|上面).{0,8}(?:话|事|事情|内容|对话|东西)|今天的事情?)[\s\p{P}]*$|^(?:的|得|是|不|没|完|吗|呢|好|真)",
        )
    });
    POINTING.is_match(it.trim())
}

/// How sure it is that a name is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sure {
    /// `change your name to …`: whatever follows is meant for a name.
    Ordered,
    /// `your new name is …`: something else may follow.
    Said,
}

/// The longest name, and the most words of one.
const NAME_CHARS_MAX: usize = 80;
const NAME_WORDS_MAX: usize = 4;

/// The most Chinese characters of a name, as ordered and as said.
const NAME_HAN_MAX: [usize; 2] = [10, 5];

/// Words no name has: those that make a clause, and those that only hold its place.
#[rustfmt::skip] // a line a kind of word
const NO_NAME: &[&str] = &[
    "or", "and", "but", "nor", "if", "when", "while", "because", "since", "unless", "until", "than", "then", "so", "as",
    "is", "isn't", "are", "aren't", "was", "wasn't", "were", "be", "been", "being", "am", "do", "don't", "does", "did", "has", "have",
    "had", "would", "should", "could", "must", "shall", "cannot", "can't", "won't", "sounds", "seems", "means", "makes", "match",
    "i", "i'm", "i'll", "you", "he", "she", "it", "we", "they", "me", "him", "us", "them", "my", "mine", "your", "yours", "his", "our",
    "their", "its", "yourself", "myself", "this", "that", "these", "those", "there", "here",
    "to", "for", "with", "from", "at", "by", "about", "into", "in", "on", "like", "without",
    "what", "who", "whom", "whose", "which", "how", "why", "where", "whether",
    "no", "not", "none", "nothing", "something", "anything", "everything", "whatever", "whichever", "whoever", "someone", "somebody",
    "anyone", "anybody", "everyone", "everybody", "nobody", "noone", "else", "etc", "same", "unknown", "undefined", "null", "nil",
    "n/a", "blank", "empty", "random", "default", "secret", "tbd", "another", "other", "different", "better", "nicer", "shorter",
    "longer", "funnier", "cooler", "simpler", "impossible", "possible", "hard", "easy",
    "today", "tomorrow", "yesterday", "tonight", "now", "later", "soon", "never", "always", "again", "back", "once", "instead",
    "maybe", "perhaps", "please", "thanks", "sometime", "sometimes", "anytime", "anyway", "already", "yet", "still", "too", "either",
    "a", "an", "one", "some", "any", "names", "name", "lucky", "blessed", "smart", "stupid", "crazy", "out", "up", "sick", "happy",
    "whatnot", "stuff", "thing", "things", "unnamed", "nameless", "anonymous",
];

/// Words that may stand small inside of a name.
const NAME_PARTICLES: [&str; 14] =
    ["of", "the", "de", "la", "le", "van", "von", "der", "den", "da", "di", "del", "el", "bin"];

/// What no Chinese name has or begins with.
const NO_NAME_CHINESE: &str = r"^(?:不|别|没|一个|个|一下|一点|更|好听|秘密|明天|今天|以后|空$|空白|无$|叫|做)|什么|啥|谁|哪|怎|吗|么|呢|还是|或|随便|任何|其他|其它|某|我|你|您|他|她|它|们|的|了|这|那|是|很|太|更|真的|大家|别人|原来|原样|几|多少|可能|可以|不行|不好|不是|都行|如果|都可以|明天|以后|而已|罢了";

/// What `叫` may call besides a name: a cab, the police, one who sleeps.
const NO_NAME_CHINESE_SAID: &str = r"^(?:醒|停|好|苦|喊|板|价|座|屈|唤|声|起|来|人|门|菜|餐|饭|车|真|难|大声|小声)|外卖|外送|快餐|车$|出租|的士|滴滴|救护|警察|保安|医生|护士|客服|服务员|快递|起床|回来|过来|过去|吃饭|早餐|午餐|晚餐|咖啡|奶茶|老师|爸|妈|爷爷|奶奶|人来|帮忙|难听|好听|难记|秘密|上$|真难|得|不|没|也|都|就|吧";

/// Whether this could be a name: short, a few words, and no clause.
pub(super) fn is_name(name: &str, is_quoted: bool, sure: Sure) -> bool {
    static CHINESE: LazyLock<Regex> = LazyLock::new(|| compiled(NO_NAME_CHINESE));
    static CHINESE_SAID: LazyLock<Regex> = LazyLock::new(|| compiled(NO_NAME_CHINESE_SAID));
    const MARKS: &str = ",，.。!！?？;；:：\n…—()（）、\"“”「」『』";
    let lower = name.to_lowercase().replace('’', "'");
    let words: Vec<&str> = lower.split_whitespace().collect();
    let han = name.chars().filter(|c| matches!(c, '\u{3400}'..='\u{9fff}')).count();
    let [ordered, said] = NAME_HAN_MAX;
    let is_short =
        ipc::text::chars(name) <= NAME_CHARS_MAX && words.len() <= NAME_WORDS_MAX && han <= ordered;
    let is_word = name.chars().any(char::is_alphanumeric) && !name.contains('\n');
    let stands_for_nothing = !words.is_empty() && words.iter().all(|word| NO_NAME.contains(word));
    if !is_short || !is_word || stands_for_nothing {
        return false;
    }
    if is_quoted {
        return !matches!(lower.as_str(), "什么" | "什麼" | "随便" | "隨便");
    }
    let is_part = |word: &str| is_capital(word) || NAME_PARTICLES.contains(&word);
    let article = name.starts_with("the ") && !name.split_whitespace().skip(1).all(is_part);
    let clause = words.iter().any(|word| NO_NAME.contains(word)) || article || CHINESE.is_match(name);
    let mut letters = name.char_indices().filter(|(_, letter)| MARKS.contains(*letter));
    // A full stop inside of a word belongs to it, and so does one behind a letter or two: `R.U.R`, `Dr. Bob`.
    let marked = letters.any(|(at, letter)| {
        let next = name.get(at + letter.len_utf8()..).and_then(|rest| rest.chars().next());
        let word = name.get(..at).and_then(|before| before.split_whitespace().last()).unwrap_or_default();
        letter != '.' || (next.is_none_or(char::is_whitespace) && word.len() > 2)
    });
    if clause || marked {
        return false;
    }
    let shouted = words.len() > 1 && !name.chars().any(char::is_lowercase) && name.is_ascii();
    let called = || {
        let capitals = name.split_whitespace().all(is_part);
        capitals && !shouted && han <= said && !CHINESE_SAID.is_match(name)
    };
    sure == Sure::Ordered || called()
}

fn is_capital(word: &str) -> bool {
    word.chars().next().is_some_and(|first| !first.is_lowercase())
}

/// What she may be wished to do for a long time: to learn, to practise, to look into something.
const LASTING: &str = r"^(?:learn|study|explore|discover|practi[sc]e|master|investigate|research|memori[sz]e|get better at|become better at|teach yourself|collect|observe)\b|^(?:学|研究|练|探索|掌握|钻研|琢磨|弄清|搞懂|观察|收集)";

/// Among these, what is no such thing: a message, or a thing at hand.
const NOT_LASTING: &str = r"^[a-z]+ (?:that|this|it|me|us|him|them|these|those|my|your (?:lesson|place)|the (?:truth|hard way)|from (?:this|that|it|your)|about (?:this|that|it|me)|something|anything|nothing|whatever|everything|what|who|why)\b|^[a-z]+[\s\p{P}]*$|^学(?:校|生|院|费|历|期)|^(?:学|学会|学习|研究|练|练习|探索|掌握|观察|收集|搞懂|弄清)(?:一下|一点|点)?(?:什么|我|这|那|它|他|她|东西|随便|别的)|^(?:学|学会|学习|学着|研究|练|练习|探索|掌握)(?:一下|一点|点)?[\s\p{P}]*$|^学(?:着)?点";

/// Whether a wish is one she can follow in her own time. What is wanted here and now, and what she is only to know, is none.
pub(super) fn is_lasting(wish: &str) -> bool {
    static SOME: LazyLock<Regex> = LazyLock::new(|| compiled(LASTING));
    static NOT: LazyLock<Regex> = LazyLock::new(|| compiled(NOT_LASTING));
    SOME.is_match(wish) && !NOT.is_match(wish) && sentences(wish).nth(1).is_none()
}

fn is_mark(letter: char) -> bool {
    matches!(letter, '?' | '？' | '!' | '！' | '.' | '。' | '~' | '～' | '…')
}

/// The tables as one pattern, each line at the beginning of a clause.
fn clauses(tables: &[&[&str]]) -> Regex {
    let lines = tables.concat().join("|");
    compiled(&format!("{BOUNDARY}{LEAD}(?:{lines})"))
}

fn compiled(text: &str) -> Regex {
    pattern(&in_both_scripts(text))
}
