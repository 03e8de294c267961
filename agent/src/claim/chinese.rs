//! What a Chinese sentence claims to have done.

use std::sync::LazyLock;

use regex::Regex;

use super::{Deed, sentences::clauses};

/// What says by itself that something stays.
const KEEPS: &str =
    "保存|存好|存下|存入|存到|存进|存档|储存|存储|写入|写进|写到|记录|记下|记到|记进|记入|记住|记在";
/// What may also be said of words in a conversation.
const CHANGES: &str =
    "修改|更改|更新|删除|删掉|改好|改成|重命名|移动|添加|创建|新建|替换|追加|移除|清空|写好|加入|加到";
const SENDS: &str = "发送|发出|发给|发到|发过|发了|发好|寄出|寄给|转发|发布";
/// What may stand before a verb and says nothing of who does it but her.
const FILLERS: &str = "好的|好|嗯|是的|现在|刚刚|刚|也|都|全部|全|均|并且|并|然后|同时|就|顺便|另外|我们|我|帮你|帮您|为你|为您|给你|给您|替你|替您|给她|给他|向她|向他|给对方|成功|搞定|完成| ";
/// What stays when the conversation is over.
const LASTING: &str = "文件|笔记|记忆|日记|配置|设置|提醒|日程|日历|待办|数据库|目录|资料|身份|宪章|规则|仓库|代码库|愿望|\u{e000}|[A-Za-z0-9_/-]+\\.[A-Za-z]{1,5}";
/// What else something may be done with.
const THINGS: &str = "内容|邮件|消息|短信|信|修改|更改|变更|改动|文档|偏好|名字|信息|数据|记录|计划|条目|它|这个|这些|这点|这|那|一切";

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("the pattern is a constant")
}

static CLAIM: LazyLock<Regex> = LazyLock::new(|| {
    pattern(&format!(
        "^(?P<who>.{{0,16}}?)(?P<has>已经|已)?(?:{FILLERS})*(?:[把将](?P<what>.{{1,40}}?))?(?:(?P<keeps>{KEEPS})|(?P<changes>{CHANGES})|(?P<sends>{SENDS}))(?P<rest>.*)$"
    ))
});
/// How it is said that something is done.
static IS_DONE: LazyLock<Regex> = LazyLock::new(|| {
    pattern("^(?:好|完|下来|下|进|入|到|在|掉|出去|过去)?了|^(?:成功|完成|完毕)|(?:下来|好|完)?了$")
});
static NAMES_HER: LazyLock<Regex> = LazyLock::new(|| pattern(&format!("^(?:{FILLERS})*$")));
static NAMES_A_THING: LazyLock<Regex> =
    LazyLock::new(|| pattern(&format!("^[^你您他她谁要想会能让]*(?:{LASTING}|{THINGS})(?:{FILLERS})*$")));
static LASTS: LazyLock<Regex> = LazyLock::new(|| pattern(LASTING));
/// What makes a clause no report, or one of another time.
static NOT_SO: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        "没|未|不|无法|别|尚|失败|请|之前|以前|上次|昨|早就|早已|曾|刚才|当时|吗|呢|么|是否|说|以为|据|如下|以下|下面|上面|草稿|即将|将会|过了|默认|自动|总是|每次",
    )
});
/// What makes the rest of a sentence no report.
static SUPPOSED: LazyLock<Regex> = LazyLock::new(|| pattern("如果|若|要是|假如|万一|一旦|除非|只要|等|当"));

/// What the sentence claims.
pub(super) fn deeds(bare: &str) -> Vec<Deed> {
    let mut found = Vec::new();
    for clause in clauses(bare) {
        if SUPPOSED.is_match(clause) {
            break;
        }
        found.extend(of_clause(clause));
    }
    found.dedup();
    found
}

fn of_clause(clause: &str) -> Option<Deed> {
    if NOT_SO.is_match(clause) {
        return None;
    }
    let claim = CLAIM.captures(clause)?;
    let part = |name: &str| claim.name(name).map_or("", |part| part.as_str());
    let (who, rest) = (part("who"), part("rest"));
    // `已保存的文件` names a thing
    if rest.starts_with('的') || rest.starts_with("了的") {
        return None;
    }
    let ended = IS_DONE.is_match(rest) || part("sends") == "发了";
    if !(ended || claim.name("has").is_some()) || !(NAMES_HER.is_match(who) || NAMES_A_THING.is_match(who)) {
        return None;
    }
    if claim.name("sends").is_some() {
        return Some(Deed::Sent);
    }
    let is_alone = NAMES_HER.is_match(who)
        && claim.name("what").is_none()
        && rest.trim_end_matches(['了', '好', '成', '功', '完', '毕']).is_empty();
    (claim.name("keeps").is_some() || is_alone || LASTS.is_match(clause)).then_some(Deed::Kept)
}
