/* Makes keys of file names, decomposed and in lower case, so that names which look the same have
 * the same key; tests for endings and files. */
#include <stdlib.h>
#include <string.h>

#include "scene/find.h"

/* Canonical decompositions of UnicodeData.txt 14, for Latin, Greek, Cyrillic, kana and Arabic: for
 * each mark, pairs of the character before the mark and the composed character. Hangul is
 * computed; other scripts are compared as they are. macOS stores names decomposed; most other
 * systems store them as typed, which is composed. */
static const struct {
    uint16_t mark;
    const char *pairs;
} decompositions[] = {
    {0x0300, "AÀEÈIÌOÒUÙaàeèiìoòuùÜǛüǜNǸnǹЕЀИЍеѐиѝĒḔēḕŌṐōṑWẀwẁÂẦâầĂẰăằÊỀêềÔỒôồƠỜơờƯỪưừYỲyỳἀἂἁἃ"
             "ἈἊἉἋἐἒἑἓἘἚἙἛἠἢἡἣἨἪἩἫἰἲἱἳἸἺἹἻὀὂὁὃὈὊὉὋὐὒὑὓὙὛὠὢὡὣὨὪὩὫαὰεὲηὴιὶοὸυὺωὼΑᾺΕῈΗῊ᾿῍ϊῒΙῚ῾῝ϋῢ"
             "ΥῪ¨῭ΟῸΩῺ"},
    {0x0301, "AÁEÉIÍOÓUÚYÝaáeéiíoóuúyýCĆcćLĹlĺNŃnńRŔrŕSŚsśZŹzźÜǗüǘGǴgǵÅǺåǻÆǼæǽØǾøǿ¨΅ΑΆΕΈΗΉΙΊΟΌ"
             "ΥΎΩΏϊΐαάεέηήιίϋΰοόυύωώϒϓГЃКЌгѓкќÇḈçḉĒḖēḗÏḮïḯKḰkḱMḾmḿÕṌõṍŌṒōṓPṔpṕŨṸũṹWẂwẃÂẤâấĂẮăắ"
             "ÊẾêếÔỐôốƠỚơớƯỨưứἀἄἁἅἈἌἉἍἐἔἑἕἘἜἙἝἠἤἡἥἨἬἩἭἰἴἱἵἸἼἹἽὀὄὁὅὈὌὉὍὐὔὑὕὙὝὠὤὡὥὨὬὩὭ᾿῎῾῞"},
    {0x0302, "AÂEÊIÎOÔUÛaâeêiîoôuûCĈcĉGĜgĝHĤhĥJĴjĵSŜsŝWŴwŵYŶyŷZẐzẑẠẬạậẸỆẹệỌỘọộ"},
    {0x0303, "AÃNÑOÕaãnñoõIĨiĩUŨuũVṼvṽÂẪâẫĂẴăẵEẼeẽÊỄêễÔỖôỗƠỠơỡƯỮưữYỸyỹ"},
    {0x0304, "AĀaāEĒeēIĪiīOŌoōUŪuūÜǕüǖÄǞäǟȦǠȧǡÆǢæǣǪǬǫǭÖȪöȫÕȬõȭȮȰȯȱYȲyȳИӢиӣУӮуӯGḠgḡḶḸḷḹṚṜṛṝαᾱΑᾹ"
             "ιῑΙῙυῡΥῩ"},
    {0x0306, "AĂaăEĔeĕGĞgğIĬiĭOŎoŏUŬuŭУЎИЙийуўЖӁжӂАӐаӑЕӖеӗȨḜȩḝẠẶạặαᾰΑᾸιῐΙῘυῠΥῨ"},
    {0x0307, "CĊcċEĖeėGĠgġIİZŻzżAȦaȧOȮoȯBḂbḃDḊdḋFḞfḟHḢhḣMṀmṁNṄnṅPṖpṗRṘrṙSṠsṡŚṤśṥŠṦšṧṢṨṣṩTṪtṫWẆ"
             "wẇXẊxẋYẎyẏſẛ"},
    {0x0308, "AÄEËIÏOÖUÜaäeëiïoöuüyÿYŸΙΪΥΫιϊυϋϒϔЕЁІЇеёіїАӒаӓӘӚәӛЖӜжӝЗӞзӟИӤиӥОӦоӧӨӪөӫЭӬэӭУӰуӱЧӴ"
             "чӵЫӸыӹHḦhḧÕṎõṏŪṺūṻWẄwẅXẌxẍtẗ"},
    {0x0309, "AẢaảÂẨâẩĂẲăẳEẺeẻÊỂêểIỈiỉOỎoỏÔỔôổƠỞơởUỦuủƯỬưửYỶyỷ"},
    {0x030a, "AÅaåUŮuůwẘyẙ"},
    {0x030b, "OŐoőUŰuűУӲуӳ"},
    {0x030c, "CČcčDĎdďEĚeěLĽlľNŇnňRŘrřSŠsšTŤtťZŽzžAǍaǎIǏiǐOǑoǒUǓuǔÜǙüǚGǦgǧKǨkǩƷǮʒǯjǰHȞhȟ"},
    {0x030f, "AȀaȁEȄeȅIȈiȉOȌoȍRȐrȑUȔuȕѴѶѵѷ"},
    {0x0311, "AȂaȃEȆeȇIȊiȋOȎoȏRȒrȓUȖuȗ"},
    {0x0313, "αἀΑἈεἐΕἘηἠΗἨιἰΙἸοὀΟὈυὐωὠΩὨρῤ"},
    {0x0314, "αἁΑἉεἑΕἙηἡΗἩιἱΙἹοὁΟὉυὑΥὙωὡΩὩρῥΡῬ"},
    {0x031b, "OƠoơUƯuư"},
    {0x0323, "BḄbḅDḌdḍHḤhḥKḲkḳLḶlḷMṂmṃNṆnṇRṚrṛSṢsṣTṬtṭVṾvṿWẈwẉZẒzẓAẠaạEẸeẹIỊiịOỌoọƠỢơợUỤuụƯỰưự"
             "YỴyỵ"},
    {0x0324, "UṲuṳ"},
    {0x0325, "AḀaḁ"},
    {0x0326, "SȘsșTȚtț"},
    {0x0327, "CÇcçGĢgģKĶkķLĻlļNŅnņRŖrŗSŞsşTŢtţEȨeȩDḐdḑHḨhḩ"},
    {0x0328, "AĄaąEĘeęIĮiįUŲuųOǪoǫ"},
    {0x032d, "DḒdḓEḘeḙLḼlḽNṊnṋTṰtṱUṶuṷ"},
    {0x032e, "HḪhḫ"},
    {0x0330, "EḚeḛIḬiḭUṴuṵ"},
    {0x0331, "BḆbḇDḎdḏKḴkḵLḺlḻNṈnṉRṞrṟTṮtṯZẔzẕhẖ"},
    {0x0342, "ἀἆἁἇἈἎἉἏἠἦἡἧἨἮἩἯἰἶἱἷἸἾἹἿὐὖὑὗὙὟὠὦὡὧὨὮὩὯαᾶ¨῁ηῆ᾿῏ιῖϊῗ῾῟υῦϋῧωῶ"},
    {0x0345, "ἀᾀἁᾁἂᾂἃᾃἄᾄἅᾅἆᾆἇᾇἈᾈἉᾉἊᾊἋᾋἌᾌἍᾍἎᾎἏᾏἠᾐἡᾑἢᾒἣᾓἤᾔἥᾕἦᾖἧᾗἨᾘἩᾙἪᾚἫᾛἬᾜἭᾝἮᾞἯᾟὠᾠὡᾡὢᾢὣᾣὤᾤὥᾥὦᾦὧᾧ"
             "ὨᾨὩᾩὪᾪὫᾫὬᾬὭᾭὮᾮὯᾯὰᾲαᾳάᾴᾶᾷΑᾼὴῂηῃήῄῆῇΗῌὼῲωῳώῴῶῷΩῼ"},
    {0x0653, "\u0627\u0622"},
    {0x0654, "\u0627\u0623\u0648\u0624\u064a\u0626\u06d5\u06c0\u06c1\u06c2\u06d2\u06d3"},
    {0x0655, "\u0627\u0625"},
    {0x3099, "かがきぎくぐけげこごさざしじすずせぜそぞただちぢつづてでとどはばひびふぶへべほぼ"
             "うゔゝゞカガキギクグケゲコゴサザシジスズセゼソゾタダチヂツヅテデトドハバヒビフブ"
             "ヘベホボウヴワヷヰヸヱヹヲヺヽヾ"},
    {0x309a, "はぱひぴふぷへぺほぽハパヒピフプヘペホポ"},
};

/* Appends the UTF-8 of a character below U+10000. */
static void add_character(struct base_text *key, uint32_t c)
{
    const char bytes[3] = {(char)(0xe0 | c >> 12), (char)(0x80 | (c >> 6 & 0x3f)),
                           (char)(0x80 | (c & 0x3f))};
    const char two[2] = {(char)(0xc0 | c >> 6), bytes[2]}, one = (char)c;
    if (c < 0x80)
        base_text_add_bytes(key, &one, 1);
    else if (c < 0x800)
        base_text_add_bytes(key, two, sizeof(two));
    else
        base_text_add_bytes(key, bytes, sizeof(bytes));
}

/* Returns the lower case of a decomposed letter; a few rare letters are not covered. */
static uint32_t lower(uint32_t c)
{
    bool latin = (c >= 'A' && c <= 'Z') || (c >= 0xc0 && c <= 0xde && c != 0xd7);
    bool greek = c >= 0x391 && c <= 0x3a9, cyrillic = c >= 0x410 && c <= 0x42f;
    bool even = (c >= 0x100 && c <= 0x137) || (c >= 0x14a && c <= 0x177) ||
                (c >= 0x460 && c <= 0x481) || (c >= 0x48a && c <= 0x4bf) ||
                (c >= 0x4d0 && c <= 0x52f);
    bool odd = (c >= 0x139 && c <= 0x148) || (c >= 0x179 && c <= 0x17e);
    if (latin || greek || cyrillic)
        return c + 0x20;
    if (c >= 0x400 && c <= 0x40f)
        return c + 0x50;
    return (even && c % 2 == 0) || (odd && c % 2 == 1) ? c + 1 : c;
}

/* Splits `c` into letter and mark; returns false when `c` is not composed. */
static bool split(uint32_t c, uint32_t *first, uint32_t *mark)
{
    for (size_t i = 0; i < BASE_COUNT(decompositions); i++) {
        uint32_t letter = 0, composed = 0;
        for (const char *at = decompositions[i].pairs; *at != '\0';) {
            at += base_read_character(at, &letter);
            at += base_read_character(at, &composed);
            if (composed != c)
                continue;
            *first = letter;
            *mark = decompositions[i].mark;
            return true;
        }
    }
    return false;
}

static void add_letter(struct base_text *key, uint32_t c, bool fold)
{
    add_character(key, fold ? lower(c) : c);
}

/* Appends a decomposed Hangul syllable (Unicode 14, section 3.12). */
static void add_hangul(struct base_text *key, uint32_t syllable)
{
    add_character(key, 0x1100 + syllable / (21 * 28));
    add_character(key, 0x1161 + syllable / 28 % 21);
    if (syllable % 28 > 0)
        add_character(key, 0x11a7 + syllable % 28);
}

static void add_decomposed(struct base_text *key, uint32_t c, bool fold)
{
    uint32_t marks[4];
    size_t count = 0;
    if (c >= 0xac00 && c <= 0xd7a3) {
        add_hangul(key, c - 0xac00);
        return;
    }
    while (count < BASE_COUNT(marks) && split(c, &c, &marks[count]))
        count++;
    add_letter(key, c, fold);
    while (count-- > 0)
        add_character(key, marks[count]);
}

char *scene_name_key(const char *name, bool fold)
{
    struct base_text key = {0};
    base_text_add_bytes(&key, "", 0);
    while (*name != '\0') {
        uint32_t c = 0;
        size_t size = base_read_character(name, &c);
        if (size >= 2 && c < 0x10000)
            add_decomposed(&key, c, fold);
        else if (size == 1)
            add_letter(&key, c, fold);
        else
            base_text_add_bytes(&key, name, size > 0 ? size : 1);
        name += size > 0 ? size : 1;
    }
    if (!key.failed)
        return key.data;
    free(key.data);
    return NULL;
}

bool reader_ends_with(const char *text, const char *end)
{
    size_t size = strlen(text), end_size = strlen(end);
    return size >= end_size && strcmp(text + size - end_size, end) == 0;
}

vkn_status reader_find(const char *folder, const char *name, char **file)
{
    *file = base_path_join(folder, name);
    if (*file == NULL)
        return VKN_ERROR;
    if (!base_file_exists(*file)) {
        free(*file);
        *file = NULL;
    }
    return VKN_OK;
}
