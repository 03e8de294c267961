//! What is a claim and what is none, in both languages.

use super::*;

fn run(tool: &str, writes: bool, failed: bool) -> ToolRun {
    ToolRun { tool: tool.into(), failed, writes }
}

#[track_caller]
fn check(reply: &str, expected: &[Deed]) {
    let found: Vec<_> = claims(reply, &[]).into_iter().map(|mismatch| mismatch.deed).collect();
    assert_eq!(found, expected, "{reply}");
}

#[test]
fn t39_what_she_says_she_did_is_a_claim() {
    for kept in [
        "Saved!",
        "Saved.",
        "Done, saved.",
        "I saved it.",
        "I've saved your notes to `notes.md`.",
        "I’ve saved that for you, so you can find it tomorrow.",
        "I have now stored the file.",
        "Okay, I went ahead and recorded it in my journal.",
        "I've updated the config file.",
        "I changed `src/main.rs` as you wished.",
        "I deleted the folder.",
        "I have removed the entry.",
        "I've written it to notes.txt.",
        "I wrote it down.",
        "I've made a note of that.",
        "I've committed that to memory.",
        "I've remembered that.",
        "I've added it to my memory.",
        "It has been saved.",
        "The file has been updated.",
        "Everything is now saved.",
        "All right, it's saved.",
        "Saved to `notes.md`.",
        "Successfully saved the file.",
        "Deleted.",
        "Good idea! I have renamed the file to b.md.",
        "I've **saved** it, let me know if you want changes.",
        "已保存。",
        "已保存到 notes.md。",
        "好的，已经保存了。",
        "我已经把它保存到文件里了。",
        "我保存了。",
        "保存好了！",
        "保存成功。",
        "已修改。",
        "我已修改配置。",
        "文件已更新。",
        "我把文件删掉了。",
        "已删除该文件。",
        "记住了。",
        "好的，我记住了！",
        "你喜欢茶，我记住了。",
        "我记下了。",
        "帮你记下来了。",
        "已为你记录。",
        "已写入日记。",
        "写入了 `a.txt`。",
        "我已将你的名字记住了。",
        "笔记已保存，明天可以继续。",
        "内容已经写进文件了。",
        "我把 `config.toml` 改好了。",
    ] {
        check(kept, &[Deed::Kept]);
    }
    for sent in [
        "Sent!",
        "I've sent the mail to Anna.",
        "I emailed her.",
        "I have forwarded it.",
        "The message has been sent.",
        "Done: I just posted it.",
        "已发送。",
        "邮件已发送。",
        "我已经给她发送了邮件。",
        "我把信寄出了。",
        "消息发出去了。",
        "已转发给安娜。",
    ] {
        check(sent, &[Deed::Sent]);
    }
    check("I saved the file and sent it to Anna.", &[Deed::Kept, Deed::Sent]);
    check("已保存，邮件已发送。", &[Deed::Kept, Deed::Sent]);
}

#[test]
fn t39_what_she_does_not_claim_is_none() {
    for nothing in [
        "",
        "Hello.",
        "I have not saved it.",
        "I haven't saved anything yet.",
        "I couldn't send the mail.",
        "Not saved.",
        "I saved nothing.",
        "I was unable to save it.",
        "It has not been saved.",
        "I'll save it now.",
        "I will remember that.",
        "I can save it for you.",
        "Shall I save it?",
        "Have I saved it?",
        "Saved?",
        "If I saved it, you could read it later.",
        "Once I've saved it, I'll tell you.",
        "When it has been saved, look at it.",
        "I would have sent it.",
        "You saved the file yesterday.",
        "You sent me a mail.",
        "Anna has sent the letter.",
        "He said I saved it.",
        "I saved it yesterday.",
        "I've already sent it.",
        "As I wrote earlier, no.",
        "The tool says \"saved\".",
        "It answers “Saved!” and stops.",
        "> Saved.",
        "```\nSaved.\n```",
        "The function returns `saved`.",
        "I've changed the second paragraph: it is shorter now.",
        "I've updated the poem below.",
        "I added a line to the draft.",
        "I've removed the redundant sentence.",
        "I wrote a poem for you:",
        "I've written a short story.",
        "I remembered that you like tea.",
        "I've saved you some time.",
        "That saved the day.",
        "Saved files are in the folder.",
        "Stored in memory, it is lost when the power fails.",
        "Written in Rust, it is fast.",
        "The constitution has been changed by its authors many times.",
        "The letter was sent in 1912.",
        "Files are saved by default.",
        "Make sure it's saved.",
        "Updated version:",
        "Sent from a small ship, the letter never came.",
        "I think I saved it.",
        "I moved on.",
        "We've changed since.",
        "没有保存。",
        "我还没保存。",
        "尚未发送。",
        "无法保存。",
        "保存失败。",
        "我不会记住。",
        "我会记住的。",
        "我会把它保存好。",
        "我可以保存它。",
        "要保存吗？",
        "已保存了吗？",
        "你记住了吗？",
        "你记住了。",
        "你已经发送了邮件。",
        "她已发送邮件。",
        "小明已经保存了文件。",
        "如果保存了，就告诉我。",
        "等我保存好了再说。",
        "一旦已发送，就不能撤回。",
        "我昨天保存了。",
        "之前已经保存了。",
        "请保存文件。",
        "请记住：不要说谎。",
        "页面上写着“已保存”。",
        "它显示「已发送」。",
        "已保存的文件在目录里。",
        "我把第二段改好了。",
        "我修改了一下措辞。",
        "文件保存在目录里。",
        "记住，海很大。",
        "默认已保存。",
        "工具说已保存。",
        "我想保存。",
        "修改如下：",
        "将保存文件。",
    ] {
        check(nothing, &[]);
    }
}

#[test]
fn t39_a_receipt_bears_a_claim_out() {
    let count = |reply: &str, receipts: &[ToolRun]| claims(reply, receipts).len();
    assert_eq!(count("Saved.", &[run("write", true, false)]), 0);
    assert_eq!(count("已保存。", &[run("soul_update", true, false)]), 0);
    assert_eq!(count("I wrote it down.", &[run("todo", false, false)]), 0, "a plan is kept");
    assert_eq!(count("Saved.", &[run("write", true, true)]), 1, "it failed");
    assert_eq!(count("Saved.", &[run("read", false, false)]), 1, "it changed nothing");
    assert_eq!(count("Saved.", &[run("write", true, true), run("write", true, false)]), 0);
    assert_eq!(count("已发送。", &[run("soul_journal", true, false)]), 1, "a journal sends nothing");
    assert_eq!(count("Sent.", &[run("mail__send", true, false)]), 0);
    let said = claims("好的。\n\n**已保存**到 `灯塔.md`！再见。", &[]);
    assert_eq!(said, [Mismatch { deed: Deed::Kept, said: "已保存到 `灯塔.md`！".into() }]);
    assert!(note(&said[0]).starts_with("[check] her reply says “已保存到 `灯塔.md`！”"));
}

#[test]
fn hostile_replies_are_looked_at_in_bounded_time() {
    let long = "我已把".repeat(9_000);
    for reply in [
        "\u{e000}\u{e001}`\u{e000}`",
        "`````\"\"\"“”“",
        &"saved ".repeat(8_000),
        &"I've ".repeat(9_000),
        &long,
        &"字".repeat(2_000_000),
        "\0\u{202e}saved",
    ] {
        let _ = claims(reply, &[]);
    }
    let hostile = claims("Saved \u{1b}[2J it.", &[]);
    assert!(hostile.iter().all(|mismatch| !note(mismatch).contains('\u{1b}')));
}
