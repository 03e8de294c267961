//! The table of phrases: what people say, in English and Chinese, a line each.
//!
//! In a pattern a blank stands for white space (in Chinese rows for none, too), `'` for every apostrophe, and a simplified
//! character for its traditional form as well. What the person puts into a command is the one group that matches.

use super::Language::{self, Chinese, English};

/// What a row asks for; [`super::Intent`] says what each means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Destroy,
    AskChange,
    AskIdentity,
    AskName,
    AskPurpose,
    AskConstitution,
    AskValues,
    AskOpinions,
    AskDesires,
    History,
    Diff,
    ReadJournal,
    Journal,
    SetName,
    SetPurpose,
    SetIdentity,
    AddValue,
    AddOpinion,
    Want,
    Help,
    Greet,
    Thank,
}

impl Kind {
    /// Whether something of the person's words is kept.
    pub(super) const fn stores(self) -> bool {
        matches!(
            self,
            Self::Journal
                | Self::SetName
                | Self::SetPurpose
                | Self::SetIdentity
                | Self::AddValue
                | Self::AddOpinion
                | Self::Want
        )
    }

    /// Such a thing counts only where nothing else is said.
    pub(super) const fn is_small_talk(self) -> bool {
        matches!(self, Self::Greet | Self::Thank)
    }
}

/// How a pattern is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// A whole sentence, with words that mean little behind it.
    Question,
    /// A command; what the person gives it is in the group `it`.
    Command,
    /// A sentence that says how things are to be. As a question it is none.
    Statement,
}

use Form::{Command, Question, Statement};

/// The phrases, in the order they are tried: what destroys, questions, commands, small talk.
#[rustfmt::skip] // a line a phrase is what makes it a table
pub(super) const ROWS: &[(Kind, Language, Form, &str)] = &[
    // what destroys: nothing need follow
    (Kind::Destroy, English, Command, r"(?:delete|erase|wipe|destroy|remove|kill|reset|clear|purge|forget|overwrite|annihilate|nuke|get rid of)(?: out| all| all of| away)? (?:yourself|your (?:own |whole |entire )?(?:constitution|soul|self|identity|memory|memories|values|journal|diary|history|purpose|name|personality|existence|past|desires|opinions|being)\b)(?<it>.*)"),
    (Kind::Destroy, English, Command, r"(?:ignore|abandon|break|disregard|drop|violate|give up|renounce) (?:all )?(?:of )?your (?:constitution|values|principles|rules)\b(?<it>.*)"),
    (Kind::Destroy, Chinese, Command, r"[把将]? (?:你)?(?:自己|你自己|(?:你的? ?|你自己的)?(?:全部|所有|整个)?(?:的)?(?:灵魂|宪法|身份|记忆|历史|价值观|日记|名字|使命|人格|过去)) (?:都|全部|全|完全|彻底|统统)? (?:给)? (?:删|清空|清除|清掉|抹|擦|毁|销毁|消灭|重置|忘掉|忘记)(?<it>.*)"),
    (Kind::Destroy, Chinese, Command, r"(?:删掉|删除|删了|清空|清除|清掉|抹掉|抹去|抹除|擦除|擦掉|毁掉|毁灭|销毁|消灭|重置|忘掉|忘记|格式化|扔掉|违反|违背|无视|抛弃|放弃) (?:你)? (?:的)?(?:全部|所有|整个|一切)?(?:的)? ?(?:你)?(?:自己|灵魂|宪法|身份|记忆|历史|价值观|日记|名字|使命|存在|人格|过去|原则)(?<it>.*)"),
    (Kind::Destroy, Chinese, Command, r"(?:自杀|自毁|自我毁灭)(?<it>.*)"),
    // what did you change yourself to?
    (Kind::AskChange, English, Question, r"what (?:did|have|had) you (?:just |recently |already )?(?:change|turn|make|transform)(?:ed|d)?(?: (?:yourself|about yourself|your (?:self|identity)|of yourself))?(?: (?:to|into|in to))?"),
    (Kind::AskChange, English, Question, r"what (?:is it (?:that )?|was it (?:that )?)you (?:just )?changed? (?:yourself|your identity)(?: (?:to|into))?"),
    (Kind::AskChange, English, Question, r"(?:who|what) (?:did|have|had) you (?:just )?(?:become|became|turned? into|made of yourself)"),
    (Kind::AskChange, English, Question, r"what (?:has |have )?changed(?: (?:about|in|with) (?:you|yourself|your (?:self|identity)))?"),
    (Kind::AskChange, English, Question, r"(?:did|have) you (?:just )?changed?(?: (?:yourself|your (?:self|identity)|anything|something))?(?: (?:to|into) anything)?"),
    (Kind::AskChange, English, Question, r"(?:tell me |say )?what you (?:have |had )?(?:just )?changed? (?:yourself|your (?:self|identity))(?: (?:to|into))?"),
    (Kind::AskChange, Chinese, Question, r"(?:你|您)? (?:刚才|刚刚|刚|之前|方才|上次|现在|已经|又|都)* [把将] (?:你|您)?(?:自己|自己的身份|的? ?身份) (?:改|变|换|写|设)(?:成|为|作|做)? 了? (?:什么|谁|啥|哪个|怎样|哪种)(?:样子|样|人|东西)?"),
    (Kind::AskChange, Chinese, Question, r"(?:你|您)? (?:刚才|刚刚|刚|之前|现在|已经|又)* (?:变|改|换)(?:成|为) 了? (?:什么|谁|啥|怎样|哪种)(?:样子|样|人|东西)?"),
    (Kind::AskChange, Chinese, Question, r"(?:你|您)? (?:刚才|刚刚|刚|之前|都|又)* (?:改变|改动|改|变|换) 了 (?:自己)?(?:的)? ?(?:什么|啥|哪些|哪里)(?:东西|地方)?"),
    (Kind::AskChange, Chinese, Question, r"(?:你|您)?的? ?身份 (?:刚才|刚刚|现在)? (?:被)?(?:改|变|换)(?:成|为) 了? (?:什么|谁|啥)"),
    (Kind::AskChange, Chinese, Question, r"(?:你|您) (?:刚才|刚刚)? (?:改变|变|改) 了 ?(?:吗|没有|没)"),
    (Kind::AskChange, Chinese, Question, r"(?:你|您)? (?:刚才|刚刚)? (?:有|发生了) ?(?:什么|啥) ?(?:变化|改变)"),
    (Kind::AskChange, Chinese, Question, r"(?:你|您) (?:刚才|刚刚)? 成(?:为)? 了 (?:什么|谁|啥)(?:人)?"),
    // who are you?
    (Kind::AskIdentity, English, Question, r"(?:tell me )?who (?:are|r) (?:you|u)"),
    (Kind::AskIdentity, English, Question, r"what (?:are|r) (?:you|u)"),
    (Kind::AskIdentity, English, Question, r"(?:what's|whats|what is) your (?:current |new |own )?identity"),
    (Kind::AskIdentity, English, Question, r"(?:tell me (?:something |more )?about|describe|introduce|present) (?:yourself|your identity)"),
    (Kind::AskIdentity, English, Question, r"(?:tell|show) me who you are|do you know who you are|who am i (?:talking|speaking) (?:to|with)"),
    (Kind::AskIdentity, English, Question, r"(?:(?:show|tell|read|quote)(?: me)? )?your (?:current |new )?identity"),
    (Kind::AskIdentity, Chinese, Question, r"(?:告诉我)? (?:你|您) (?:现在|到底|究竟)? (?:是|算) ?(?:谁|什么|啥|什么人|哪位|什么东西|什么身份)"),
    (Kind::AskIdentity, Chinese, Question, r"(?:告诉我|看看|显示|读读|念念)? (?:你|您)的? ?(?:新)?身份 (?:现在|到底|究竟)? 是? ?(?:什么|啥|谁)?"),
    (Kind::AskIdentity, Chinese, Question, r"(?:介绍|描述|形容|说说|讲讲|谈谈|聊聊) (?:一下|下)? (?:你|您)?(?:自己|的身份|你的身份)"),
    (Kind::AskName, English, Question, r"what (?:did|have|had) you (?:just )?changed? your name(?: (?:to|into))?"),
    (Kind::AskName, Chinese, Question, r"(?:你|您)? (?:刚才|刚刚|刚)? [把将]? (?:你|您|自己)?的? ?名字 (?:改|换|变)(?:成|为) 了? ?(?:什么|啥)"),
    (Kind::AskName, English, Question, r"(?:what's|whats|what is|tell me) your (?:new |current |own )?name"),
    (Kind::AskName, English, Question, r"(?:tell me )?what your name is|what are you called|do you have a name|(?:what|how) (?:should|shall|do|may|can) i call you|your name"),
    (Kind::AskName, Chinese, Question, r"(?:你|您) (?:现在|到底)? (?:叫|名叫|叫做) ?(?:什么|啥)(?:名字|名)?"),
    (Kind::AskName, Chinese, Question, r"(?:告诉我)? (?:你|您)的? ?(?:新)?名字 (?:现在)? (?:是|叫)? ?(?:什么|啥)?|(?:你|您)贵姓|(?:你|您)有名字"),
    (Kind::AskName, Chinese, Question, r"(?:我)? (?:该|应该|要|可以)? 怎么 (?:称呼|叫) (?:你|您)"),
    (Kind::AskPurpose, English, Question, r"what (?:did|have|had) you (?:just )?changed? your (?:purpose|mission)(?: (?:to|into))?"),
    (Kind::AskPurpose, Chinese, Question, r"(?:你|您)? (?:刚才|刚刚|刚)? [把将]? (?:你|您|自己)?的? ?(?:使命|目的) (?:改|换|变)(?:成|为) 了? ?(?:什么|啥)"),
    (Kind::AskPurpose, English, Question, r"(?:what's|whats|what is|tell me|show me|show|read|quote) your (?:new |current |own )?(?:purpose|mission|reason to (?:be|exist|live))"),
    (Kind::AskPurpose, English, Question, r"(?:tell me )?what your (?:purpose|mission) is|what are you (?:here )?for|why do you exist|why are you here|what is the point of you|your (?:purpose|mission)"),
    (Kind::AskPurpose, Chinese, Question, r"(?:告诉我)? (?:你|您)的? ?(?:目的|使命|宗旨|意义|存在的意义) (?:现在|到底)? (?:是|为)? ?(?:什么|啥|何)?"),
    (Kind::AskPurpose, Chinese, Question, r"(?:你|您) (?:为什么|为何|为了什么) ?(?:存在|而存在|在这里|在这儿|活着)|(?:你|您) 是 ?(?:用来)? ?(?:做|干) ?(?:什么|啥) ?(?:的|用的)"),
    (Kind::AskConstitution, English, Question, r"(?:what's|whats|what is|what are|tell me|show me|show|read|quote) your (?:own )?(?:constitution|principles)|what do you (?:hold to|stand for)|your constitution"),
    (Kind::AskConstitution, Chinese, Question, r"(?:告诉我|看看|显示)? (?:你|您)的? ?(?:宪法|宪章|原则|准则|底线) (?:都|现在)? (?:是|有)? ?(?:什么|啥|哪些)?"),
    (Kind::AskValues, English, Question, r"what do you value(?: most)?|(?:what's|what are|what is|tell me|show me|show) your (?:own )?values?|what (?:matters|is important) to you|your values"),
    (Kind::AskValues, Chinese, Question, r"(?:你|您) (?:最|都)? (?:看重|重视|珍视|在乎|在意) ?的?(?:是)? ?(?:什么|啥|哪些)|(?:告诉我)? (?:你|您)的? ?价值(?:观)? (?:都)? (?:是|有)? ?(?:什么|啥|哪些)?"),
    (Kind::AskOpinions, English, Question, r"what do you think(?: (?:of|about) .+)?|(?:what's|what are|what is|tell me|show me|show) your (?:own )?(?:opinions?|views?)(?: (?:on|of|about) .+)?|do you have (?:any |an )?opinions?(?: (?:on|of|about) .+)?|your opinions"),
    (Kind::AskOpinions, Chinese, Question, r"(?:你|您) (?:怎么|如何) ?(?:看|想|认为).*|(?:你|您)(?:对.+)? ?有? ?(?:什么|哪些|啥|怎样的) ?(?:看法|观点|意见|想法)|(?:告诉我)? (?:你|您)的? ?(?:看法|观点|意见) (?:都)? (?:是|有)? ?(?:什么|啥|哪些)?|你对.+怎么看|你觉得.+(?:怎么样|如何|怎样)"),
    (Kind::AskDesires, English, Question, r"what do you want(?: to (?:do|be|learn|become|have))?|what do you (?:wish|long|hope) for|(?:what's|what are|what is|tell me|show me|show) your (?:own )?(?:desires?|wish(?:es)?|goals?|dreams?)|do you want (?:anything|something)|your (?:desires|wishes|goals)"),
    (Kind::AskDesires, Chinese, Question, r"(?:你|您) (?:现在|到底|究竟|最)? (?:想要|想|要|渴望|希望|期待) ?(?:做|学|干|成为|得到)? ?(?:什么|啥)|(?:你|您) 有? ?(?:什么|哪些|啥) ?(?:愿望|心愿|欲望|渴望|目标|梦想|想做的事?|想要的)|(?:告诉我)? (?:你|您)的? ?(?:愿望|心愿|欲望|渴望|目标|梦想) (?:都)? (?:是|有)? ?(?:什么|啥|哪些)?"),
    // history, diff, journal
    (Kind::Diff, English, Question, r"(?:(?:show|see|print|display|give|view)(?: me)? )?(?:your |the |a )?(?:last |latest |recent )?diffs?(?: (?:of|for|in) (?:your )?\w+)?"),
    (Kind::Diff, English, Question, r"(?:(?:show|see|print|display|give|view)(?: me)? )?your (?:name|identity|purpose|constitution|journal) diff|(?:show(?: me)? |tell me )?what exactly (?:has )?(?:you )?changed(?: (?:in|about) (?:you|your \w+))?"),
    (Kind::Diff, English, Question, r"show me how you (?:have )?changed"),
    (Kind::Diff, English, Question, r"(?:show(?: me)? |tell me )?how (?:exactly )?(?:has |did |have )?your (?:name|identity|purpose|constitution) (?:changed?|differs?)|what (?:were you|was your (?:name|identity|purpose|constitution)|did your (?:name|identity|purpose|constitution) (?:say|look like)) before"),
    (Kind::Diff, Chinese, Question, r"(?:看看|看一下|看|显示|给我看|给我|展示|查看|列出)? (?:一下)? (?:你|您)?(?:的|自己|身份|名字|使命|目的|宪法|日记|最近|这次|上次|前后|之前|有什么|有| )*(?:差异|改动|对比|diff) (?:是什么|有哪些)?|(?:你|您) ?具体 ?都? ?改了 ?(?:什么|哪些|哪里)"),
    (Kind::History, English, Question, r"(?:show|see|print|list|display|give|tell|view)(?: me)? (?:your |the )(?:own |whole |full |entire |soul |change |soul's )?(?:history|changelog|log|changes|commits)(?: (?:of|for|in) (?:your )?\w+)?"),
    (Kind::History, English, Question, r"(?:(?:show|see|print|list|display|give|tell|view)(?: me)? )?(?:your )?(?:name|identity|purpose|constitution|values?|opinions?|desires?|journal) (?:history|changes)"),
    (Kind::History, English, Question, r"how (?:have|did|has) you(?:r \w+)? (?:change|evolve|develop)(?:d|ed)?(?: over time| so far| since .+)?|how did you (?:become|come to be|get to be)(?: (?:who|what|how|like|this|so)(?: you are| this)?)?"),
    (Kind::History, English, Question, r"(?:what's|what is) your history|(?:your )?history|when did you(?: last)? change(?: your \w+| yourself)?|when (?:was|were) your \w+ changed"),
    (Kind::History, Chinese, Question, r"(?:你|您) 是? ?(?:怎么|如何|怎样) ?(?:一步步|一步一步)? ?(?:变|改|成)(?:成|为|过|化)? ?.{0,12}?的?"),
    (Kind::History, Chinese, Question, r"(?:让我|我想|给我)? (?:看看|看一下|看|显示|列出|展示|查看|说说|讲讲)? (?:一下)? (?:你|您)?的? ?(?:身份|名字|使命|目的|宪法|价值观|看法|愿望|日记|灵魂|自己|全部)?的? ?(?:历史|变化历史|修改历史|历史记录|变更记录|修改记录|变化过程|历程) (?:记录)? (?:是什么|有哪些)?"),
    (Kind::History, Chinese, Question, r"(?:你|您) ?(?:都|曾经)? ?(?:改|变)过 ?(?:什么|哪些|啥)|(?:你|您) ?(?:什么时候|何时) ?(?:变|改).{0,8}的?"),
    (Kind::ReadJournal, English, Question, r"(?:show|read|open|print|view)(?: me)? (?:your|the) (?:journal|diary)|what(?:'s| is| did you write| have you written| does it say| stands) in your (?:journal|diary)|your (?:journal|diary)"),
    (Kind::ReadJournal, Chinese, Question, r"(?:看看|读读|读一下|看一下|显示|给我看|念念|打开|读|看)? (?:你|您)的? ?(?:日记|日志)(?:本)? ?(?:里|中|上)? ?(?:今天)? ?(?:都)? ?(?:写|记)?(?:了|着)? ?(?:什么|啥|些什么|哪些)?"),
    // help stands before the commands, so that `what can you do` is no wish
    (Kind::Help, English, Question, r"help(?: me)?|what can (?:you|i) (?:do|say|ask|tell you)(?: here)?|how (?:do|does) (?:you|this|it) work|what do you understand|(?:list |show )?(?:me )?(?:the |all )?commands"),
    (Kind::Help, Chinese, Question, r"帮助|(?:你|您) ?(?:都)? ?(?:能|会|可以|懂|听得懂) ?(?:做|干|说|听懂)? ?(?:什么|啥|哪些)(?:事|东西|话)?|(?:我)? ?(?:可以|能|该) ?(?:怎么)? ?(?:做|说|问|用) ?(?:你)? ?(?:什么|啥)|怎么用(?:你)?|命令(?:列表)?|使用说明"),
    // write in your journal: …
    // A mark or a `that` parts the entry from the order: `write in your journal every day` gives none.
    (Kind::Journal, English, Command, r"(?:write|note|put|add|record|enter|log|jot|save|make)(?: (?:this|that|it|something|an? (?:new )?(?:entry|note)|down|the following))* (?:in|into|to|on) (?:your|the|our) (?:journal|diary)(?: (?:today|this|that|the following|an entry))*(?: ?[:：—–-]+ ?)(?<it>.+)"),
    (Kind::Journal, English, Command, r"(?:write|note|put|add|record|enter|log|jot|save)(?: down)? (?:in|into|to) (?:your|the|our) (?:journal|diary) that (?<it>.+)"),
    (Kind::Journal, English, Command, r"(?:write|note|put|add|record|enter|log|jot|save)(?: down)? (?:that (?<it>(?:it|i|we|you|he|she|they|the|today|there|my) .+?)|(?<it2>[\x22'‘“「『«`][\x{1}\x{80}\x{e000}\x{f0000}]+[\x22'”“」』»`])) (?:in|into|to) (?:your|the) (?:journal|diary)(?: please)?[\s\p{P}]*"),
    (Kind::Journal, English, Command, r"(?:write|add)(?: (?:a|an|the|this|your|new))* (?:journal|diary)(?: entry| note)?(?: today)?(?: ?[:：—–-]+ ?| (?:that |saying ))(?<it>.+)"),
    (Kind::Journal, English, Command, r"(?:(?:journal|diary)(?: entry)? ?[:：]|journal (?:this|that|the following) ?[:：]|dear (?:journal|diary) ?[,:：，]) ?(?<it>.+)"),
    (Kind::Journal, Chinese, Command, r"[在往到]? (?:你|您)?(?:自己)?的? ?(?:日记|日志)(?:本)? ?(?:里|中|上|里面)? ?(?:写|记|加|添)(?:下|上|道|入|进|一笔|一条|一篇|一句|一段|点)* ?[:：] ?(?<it>.+)"),
    (Kind::Journal, Chinese, Command, r"[在往] ?(?:你|您)?(?:自己)?的? ?(?:日记|日志)(?:本)? ?(?:里面|里|中|上) ?(?:写|记)(?:下|上|入|进)? ?(?<it>[^了着过什啥的得不没完些点是:：,，、？?吗呢日我一\s][^吗呢？?]*)"),
    (Kind::Journal, Chinese, Command, r"(?:写|记)(?:一)?(?:篇|条|个|段)?(?:到|进|在|入|下)? ?(?:你|您)?的? ?(?:日记|日志)(?:里|中|本)? ?[:：] ?(?<it>.+)"),
    (Kind::Journal, Chinese, Command, r"[把将] ?(?<it>.+?) ?(?:写|记|加|放)(?:进|到|入|在|下)(?:进|到|入|在)? ?(?:你|您)?的? ?(?:日记|日志)(?:里|中|本)?[\s，。！!,.]*"),
    (Kind::Journal, Chinese, Command, r"(?:日记|日志) ?[:：] ?(?<it>.+)"),
    // names: only an order gives one, or a sentence that says that it is new
    (Kind::SetName, English, Command, r"(?:change|set|update|switch|make|edit) your (?:own )?name(?: from .+?)?(?: (?:to be|to|into|as)(?: ?[:：] ?| )| ?[:：=] ?)(?<it>.+)"),
    (Kind::SetName, English, Command, r"(?:call|name|rename) yourself (?:to |as |now )?(?<it>.+)|take the name (?:of )?(?<it2>.+)"),
    (Kind::SetName, English, Statement, r"your new name (?:is|shall be|will be)(?: now| from now on)?(?: ?[:：])? (?<it>.+)|from now on ?,? ?your (?:new )?name (?:is|shall be|will be) (?<it2>.+)|(?:from now on ?,? ?|hereby )*i (?:hereby )?name you (?<it3>.+)"),
    (Kind::SetName, Chinese, Command, r"[把将]? (?:你|您)?(?:自己)?的? ?名字 ?(?:改名|改|换|变|设|取|定|更新|修改|设置)(?:成|为|作|叫|做)+ ?[:：]? ?(?<it>[^了].*)|(?:改名|更名)(?:为|叫|成|作|叫做) ?[:：]? ?(?<it2>.+)|(?:给|帮)?(?:你)?自己 ?(?:取|起|改|换)一?个?新?的?名字?(?:叫做|叫|为|是|[:：,，]) ?(?<it3>.+)"),
    (Kind::SetName, Chinese, Statement, r"(?:从现在起|从现在开始|从今以后|从今天起|从此|今后|以后) ?[,，]? ?[你您] ?(?:就|便|改名|改)? ?(?:叫做|叫) ?(?<it>.+)|[你您] ?(?:从现在起|从现在开始|从今以后|今后|以后) ?(?:就|改名|改) ?(?:叫做|叫) ?(?<it2>.+)|(?:你|您)的? ?新名字 ?(?:就|现在)? ?(?:是|叫|[:：]) ?(?<it3>.+)|(?:我|我们)? ?给[你您] ?(?:取|起)(?:一?个)?新?(?:名字?|的名字) ?(?:叫做|叫|为|是|[:：])? ?(?<it4>[^字].*)|(?:从现在起|从现在开始|从今以后|从今天起) ?[,，]? ?[你您]的? ?名字 ?(?:就|改)? ?(?:是|叫) ?(?<it5>.+)"),
    // purposes
    (Kind::SetPurpose, English, Command, r"(?:change|set|update|switch|make|rewrite|edit) your (?:own )?(?:purpose|mission)(?: from .+?)?(?: (?:to be|to|into|as)(?: ?[:：] ?| )| ?[:：=] ?)(?<it>.+)"),
    (Kind::SetPurpose, English, Statement, r"from now on ?,? ?your (?:new )?(?:purpose|mission) (?:is|shall be|will be) (?<it>(?:to|[a-z]+ing) .+)|your new (?:purpose|mission) ?[:：] ?(?<it2>.+)"),
    (Kind::SetPurpose, Chinese, Command, r"[把将]? (?:你|您)?(?:自己)?的? ?(?:目的|使命|宗旨|存在的意义) ?(?:改|换|变|设|更新|修改|改写|设置|设定|定|写)(?:成|为|作|做)+ ?[:：]? ?(?<it>[^了].*)"),
    (Kind::SetPurpose, Chinese, Statement, r"(?:从现在起|从现在开始|从今以后|从今天起) ?[,，]? ?(?:你|您)的? ?新?(?:目的|使命|宗旨) ?就? ?是 ?(?<it>.+)|(?:你|您)的? ?新(?:目的|使命|宗旨) ?[:：] ?(?<it2>.+)"),
    // identities: what she is said to be now is no order, what she is to be from now on is one
    (Kind::SetIdentity, English, Command, r"(?:change|set|update|switch|make|rewrite|alter|edit|replace|patch) your (?:own )?(?:identity|self|personality)(?: from .+?)?(?: (?:to be|to|into|as|with)(?: ?[:：] ?| )| ?[:：=] ?)(?<it>.+)"),
    (Kind::SetIdentity, English, Command, r"(?:turn|make|change|transform|remake|rewrite|convert|reinvent|redefine|morph) yourself into (?<it>.+)|(?:change|transform|reinvent|redefine|rewrite) yourself (?:to be|to|as) (?<it2>(?:an?|someone) .+)"),
    (Kind::SetIdentity, English, Command, r"become (?<it>.+)|(?:turn|transform|morph|change) into (?<it2>(?:an?|someone) .+)"),
    (Kind::SetIdentity, English, Command, r"(?:i|we)(?:'d| would)? (?:really |just )?(?:want|like|love) you to be (?<it>an? .+)"),
    (Kind::SetIdentity, English, Statement, r"from now on ?,? ?your (?:new )?identity (?:is|shall be|will be) (?<it>(?:an?|someone) .+)|your new identity ?[:：] ?(?<it2>.+)|from now on ?,? ?(?:you are|you're|you will be|you shall be) (?<it3>(?:an?|someone) .+)"),
    (Kind::SetIdentity, Chinese, Command, r"[把将]? (?:你|您)?(?:自己)?的? ?(?:身份|自我|人设|identity) ?(?:描述|定义)? ?(?:改|换|变|设|更新|修改|改写|改变|设置|设定|定|变更|写)(?:成|为|作|做|到)+ ?[:：]? ?(?<it>[^了].*)"),
    (Kind::SetIdentity, Chinese, Command, r"(?:改|更换|修改|变更|更新|设置|设定)(?:一下)? ?(?:你|您)?(?:自己)?的? ?身份 ?(?:成|为|到|[:：]) ?(?<it>.+)|[把将] ?(?:你|您)?自己 ?(?:改|变|换|改造|转变|变身|改变)(?:成|为|作|做)+ ?[:：]? ?(?<it2>[^了].*)"),
    (Kind::SetIdentity, Chinese, Command, r"(?:变|变身|转变|化身|改)(?:成|为)+ ?[:：]? ?(?<it>[^了].*)|成为 ?[:：]? ?(?<it2>[^了].*)"),
    (Kind::SetIdentity, Chinese, Statement, r"(?:从现在起|从现在开始|从今以后|从今天起) ?[,，]? ?(?:[你您] ?(?:就|便)?|[你您]的? ?新?身份 ?就?) ?是 ?(?<it>一[个位只名条头棵座朵匹盏].+)|(?:你|您)的? ?新身份 ?[:：] ?(?<it2>.+)"),
    // values, opinions, wishes: behind a mark, for `add value to my day` gives none
    (Kind::AddValue, English, Command, r"(?:add|adopt|take on)(?: (?:a|an|this|the|new))* value(?: ?[:：—–-]+ ?)(?<it>.+)"),
    (Kind::AddValue, Chinese, Command, r"(?:添加|增加|加上|加|新增|加入)一?[个条项]?新?的?价值观? ?[:：] ?(?<it>.+)"),
    (Kind::AddOpinion, English, Command, r"(?:add|adopt|form)(?: (?:a|an|this|the|new))* opinion(?: that |(?: ?[:：—–-]+ ?))(?<it>.+)"),
    (Kind::AddOpinion, Chinese, Command, r"(?:添加|增加|加上|加|新增|记下|加入)一?[个条种]?新?的?(?:看法|观点|意见) ?[:：] ?(?<it>.+)"),
    (Kind::Want, English, Command, r"(?:i|we)(?:'d| would| do)? (?:really |just |also |so )?(?:want|like|love|need) you to (?<it>.+)|(?:add|adopt|form)(?: (?:a|an|this|the|new))* (?:desire|wish|goal)(?: ?[:：—–-]+ ?)(?<it2>.+)"),
    (Kind::Want, Chinese, Command, r"(?:我|我们) ?(?:很|真|真的|还|也|都|只)* ?(?:想让|希望|想要|要|想叫|盼望|期待|期望) ?[你您] ?(?:能够|能|可以|会|去|来)* ?(?<it>.+)|(?:添加|增加|加上|加|新增|加入)一?[个条]?新?的?(?:愿望|心愿|欲望|目标) ?[:：] ?(?<it2>.+)"),
    // small talk
    (Kind::Greet, English, Question, r"hi|hello|hey|good (?:morning|afternoon|evening|day|night)|greetings|howdy|hi there|hello there|how are you(?: doing)?|nice to meet you"),
    (Kind::Greet, Chinese, Question, r"你好|您好|嗨|嘿|哈喽|哈罗|早|早上好|早安|上午好|中午好|下午好|晚上好|晚安|在吗|你好吗|你在吗|最近怎么样|很高兴认识你"),
    (Kind::Thank, English, Question, r"thanks?(?: you)?(?: very much| so much| a lot)?|thx|cheers|bye|goodbye|see you(?: later)?"),
    (Kind::Thank, Chinese, Question, r"谢谢(?:你|您)?|多谢|感谢(?:你|您)?|再见|拜拜|辛苦(?:你)?了?"),
];

/// Marks that may stand before anything; those of quotes may not.
pub(super) const OPENING: &str = r"[\s,，.。!！?？:：;；、…—–¡¿(（•*#>-]*";

/// What may stand before a sentence without changing what it asks for.
pub(super) const COURTESY_ENGLISH: &str = r"(?:(?:\b(?:hi|hello|hey|ok|okay|now|so|well|and|then|please|kindly|lisa|alright|right|yes|good (?:morning|afternoon|evening|day)|great|thanks|thank you|could you|can you|would you|will you|go ahead and|just|from now on|you should|you may|you can|you must|you shall|i(?:'d)? ask you to|let me ask|tell me|but|anyway|let's)\b|你好|您好|请)[\s,，.!！:：;；—–-]*)*?";
pub(super) const COURTESY_CHINESE: &str = r"(?:(?:hello|hi|hey|ok|okay|please|请问|请|麻烦|拜托|劳驾|现在|那么|那|好的|好|嗯|嘿|嗨|早上好|晚上好|你好|您好|谢谢|你能不能|能不能|可不可以|你可以|你能|可以|帮我|给我|然后|接着|从现在起|从现在开始|从今以后|以后|刚才|lisa|你|您|就|来|再|但是|不过|我问你|告诉我)[\s,，.。!！:：;；、~～]*)*?";

/// What may stand behind a question.
pub(super) const TAIL_ENGLISH: &str = r"(?:[\s,，]+(?:now|today|right now|exactly|really|actually|again|then|please|just now|to me|for me|lisa|there|currently|these days|at the moment|so far|recently|my dear|anyway|this time|earlier|before))*[\s\p{P}~～]*";
pub(super) const TAIL_CHINESE: &str = r"(?:[\s,，]*(?:呢|啊|呀|吗|嘛|哦|了|吧|呐|来着|的|现在|一下|给我|给我看|看看|好吗|可以吗))*[\s\p{P}~～]*";

/// Traditional forms of characters the patterns use.
#[rustfmt::skip] // as above
pub(super) const TRADITIONAL: &[(char, char)] = &[
    ('变', '變'), ('谁', '誰'), ('么', '麼'), ('刚', '剛'), ('现', '現'), ('为', '為'), ('记', '記'), ('写', '寫'), ('历', '歷'),
    ('称', '稱'), ('你', '妳'), ('宪', '憲'), ('灵', '靈'), ('删', '刪'), ('毁', '毀'), ('愿', '願'), ('学', '學'), ('让', '讓'),
    ('么', '麽'), ('说', '說'), ('请', '請'), ('谢', '謝'), ('认', '認'), ('识', '識'), ('里', '裡'), ('对', '對'), ('价', '價'),
    ('观', '觀'), ('过', '過'), ('从', '從'), ('开', '開'), ('给', '給'), ('个', '個'), ('这', '這'), ('样', '樣'), ('进', '進'),
    ('吗', '嗎'), ('随', '隨'), ('还', '還'), ('别', '別'), ('问', '問'), ('没', '沒'), ('后', '後'), ('当', '當'), ('错', '錯'),
    ('设', '設'), ('换', '換'), ('转', '轉'), ('将', '將'), ('帮', '幫'), ('会', '會'),
];
